//go:build !linux

package proc

// Namespaces is "": there are none on this system.
func Namespaces() string { return "" }
