package safefile

import (
	"errors"
	"io/fs"
	"os"
)

// Cause returns an error of package os without its operation and path, because the message names the path that the
// user knows. It also drops errors wrapped around it. Any other error is returned unchanged.
func Cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return Cause(e.Err)
	}
	if e := (*os.LinkError)(nil); errors.As(err, &e) {
		return Cause(e.Err)
	}
	if e := (*os.SyscallError)(nil); errors.As(err, &e) {
		return Cause(e.Err)
	}
	return err
}
