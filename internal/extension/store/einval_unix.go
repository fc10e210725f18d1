//go:build unix

package store

import (
	"errors"
	"syscall"
)

// isEINVAL: how a file system says that it cannot exchange.
func isEINVAL(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS)
}
