package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func notEmpty(err error) bool {
	const dirNotEmpty = syscall.Errno(145)
	return errors.Is(err, dirNotEmpty)
}

func readDir(f *os.File, _ string, n int) ([]fs.DirEntry, error) { return f.ReadDir(n) }
