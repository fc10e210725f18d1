//go:build unix

package store

import (
	"errors"
	"syscall"
)

// isEINVAL recognises a file system that cannot exchange folders.
func isEINVAL(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS)
}
