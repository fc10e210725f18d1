package store

import "errors"

// swap fails: Windows cannot exchange folders. Two renames and the journal replace it.
func swap(_, _ string) error { return errors.ErrUnsupported }

func isEINVAL(error) bool { return false }

// syncTree and syncDir do nothing: NTFS journals a change's renames, and Windows cannot flush a folder.
func syncTree(string) error { return nil }

func syncDir(string) error { return nil }
