package store

import "errors"

// swap: this system has no such step; two renames and the journal stand in for it.
func swap(_, _ string) error { return errors.ErrUnsupported }
