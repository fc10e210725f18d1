package store

import (
	"io/fs"
	"os"
	"path/filepath"
)

// syncTree brings everything below dir to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return syncDir(path)
	})
}

// syncDir brings one file, or a folder's own entries, to the disk.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
