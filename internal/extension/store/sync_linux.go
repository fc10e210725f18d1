package store

import (
	"os"

	"golang.org/x/sys/unix"
)

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

// syncDir flushes a folder's own entries to disk.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
