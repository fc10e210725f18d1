package store

import "golang.org/x/sys/unix"

// swap exchanges two folders in one step, so that neither is ever missing.
func swap(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
