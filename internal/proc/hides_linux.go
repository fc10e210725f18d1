package proc

import (
	"errors"
	"io/fs"
)

func hides(pid int) bool {
	_, err := environ(pid)
	return errors.Is(err, fs.ErrPermission)
}
