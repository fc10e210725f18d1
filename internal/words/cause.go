package words

import (
	"errors"
	"io/fs"
	"os"
)

// Cause is what went wrong, without the operation and path that package os puts before it: the message names the path that
// the user knows. Words that others have put around the error go, too; one that os did not make stays as it is.
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
