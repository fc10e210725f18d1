//go:build unix

package source

import "syscall"

// nonBlock keeps an open from waiting for the other end of a pipe.
const nonBlock = syscall.O_NONBLOCK
