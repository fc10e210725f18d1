// Package kernel has the system calls of Linux that build a sandbox and that package syscall lacks.
//
// Package unix has them too, but the first process of a sandbox must not wait for it. Go initialises a package once
// its imports are ready, and of several ready ones the first by path. unix comes after half of the program; syscall
// is among the first.
package kernel
