//go:build unix

package workspace

import (
	"errors"
	"syscall"
)

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}
