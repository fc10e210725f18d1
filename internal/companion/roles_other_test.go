//go:build unix && !linux

package companion

// play does nothing: the tests that need it are Linux's.
func play() {}
