// Package filter is the seccomp filter of a sandbox: the system calls that a command may not make (seccomp(2)).
package filter
