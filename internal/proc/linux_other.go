//go:build !linux

package proc

import "os"

// What only Linux tells or needs is here for the other systems.

// DropCode does nothing: elsewhere than on Linux a program's code does not count as its own memory.
func DropCode() error { return nil }

// Namespaces is "": there are none on this system.
func Namespaces() string { return "" }

func brand(int) bool { return false }

func branded(int) bool { return false }

func hides(int) bool { return false }

func ofUser() []int { return nil }

func programOf(int) (string, bool) { return "", false }

func watchPipes([]*os.File) func() bool { return nil }
