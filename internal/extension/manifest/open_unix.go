//go:build unix

package manifest

import "syscall"

// openFlags keep the opening of a pipe that took a file's place from waiting for a writer.
const openFlags = syscall.O_NONBLOCK
