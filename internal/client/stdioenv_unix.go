//go:build unix

package client

import "syscall"

// stdioNames are the variables that the CLI leaves a companion of standard input and output.
func stdioNames() []string { return []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"} }

// nonblock keeps the opening of a pipe from hanging.
const nonblock = syscall.O_NONBLOCK

func fileURLPath(path string) string { return path }
