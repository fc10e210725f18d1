// Package kernel has the system calls of Linux that building a sandbox takes and that
// package syscall lacks.
//
// Package unix has them as well. It is not used, because the first process of a
// sandbox must not wait for it: Go initialises a package as soon as its imports
// are ready, and of several the one whose path sorts first. unix comes after
// half of the program; syscall is among the first.
package kernel
