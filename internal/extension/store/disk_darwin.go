package store

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// swap exchanges two folders in one step, so that neither is ever missing.
func swap(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }

// syncTree flushes everything below dir to disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return syncDir(path)
	})
}
