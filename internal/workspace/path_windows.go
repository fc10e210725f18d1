package workspace

import (
	"errors"
	"syscall"
)

func notEmpty(err error) bool {
	const dirNotEmpty = syscall.Errno(145)
	return errors.Is(err, dirNotEmpty)
}
