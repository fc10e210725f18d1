package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncTree brings everything below dir to the disk: one call for the file
// system, which is far quicker than one for each of thousands of files.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// syncDir brings a folder's own entries to the disk.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
