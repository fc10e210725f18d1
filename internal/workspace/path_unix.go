//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// readDir reads up to n entries of an open folder. A folder that was opened in an os.Root
// looks at each entry by a call of its own, two thirds of the time of an index. A copy of
// its descriptor takes the kinds that the system lists, and reads the same folder.
func readDir(f *os.File, path string, n int) ([]fs.DirEntry, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "dup", Path: path, Err: err}
	}
	plain := os.NewFile(uintptr(fd), path)
	defer plain.Close()
	return plain.ReadDir(n)
}
