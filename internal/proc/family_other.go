//go:build !linux

package proc

func programOf(int) (string, bool) { return "", false }
