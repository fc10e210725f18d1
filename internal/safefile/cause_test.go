package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestCause(t *testing.T) {
	_, path := os.Open(filepath.Join(t.TempDir(), "gone"))
	link := os.Symlink("x", filepath.Join(t.TempDir(), "gone", "x"))
	plain := errors.New("plain")
	for _, c := range []struct{ err, want error }{
		{nil, nil}, {plain, plain},
		{path, syscall.ENOENT}, {fmt.Errorf("reading: %w", path), syscall.ENOENT}, {link, syscall.ENOENT},
		{os.NewSyscallError("dup", syscall.EBADF), syscall.EBADF},
		{&fs.PathError{Op: "read", Path: "x", Err: os.NewSyscallError("read", syscall.EIO)}, syscall.EIO},
	} {
		if got := Cause(c.err); got != c.want { //nolint:errorlint // this error itself, not one that holds it
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
