//go:build unix

package workspace

import (
	"errors"
	"syscall"
)

// nonBlocking makes opening a FIFO return at once.
const nonBlocking = syscall.O_NONBLOCK

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}
