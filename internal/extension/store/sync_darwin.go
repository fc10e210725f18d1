package store

import (
	"io/fs"
	"os"
	"path/filepath"
)

// syncTree flushes everything below dir to disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return syncDir(path)
	})
}

// syncDir flushes one file, or a folder's own entries, to disk.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
