//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// isEINVAL recognises a file system that cannot exchange folders.
func isEINVAL(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS)
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
