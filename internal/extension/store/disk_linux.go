package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// swap exchanges two folders in one step, so that neither is ever missing.
func swap(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// syncTree flushes everything below dir to disk. It makes one call for the whole file system, which is much faster
// than one for each of thousands of files.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
