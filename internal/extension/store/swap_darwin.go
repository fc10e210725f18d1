package store

import "golang.org/x/sys/unix"

// swap exchanges two folders in one step, so that neither is ever missing.
func swap(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
