package store

import "errors"

// swap fails: Windows cannot exchange folders. Two renames and the journal replace it.
func swap(_, _ string) error { return errors.ErrUnsupported }
