//go:build unix

package runner

import "syscall"

// openFlags let opening a pipe end at once.
const openFlags = syscall.O_NONBLOCK
