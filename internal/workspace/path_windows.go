package workspace

import (
	"errors"
	"strings"
	"syscall"
)

// foldCase says that names differing in case alone name one file here.
const foldCase = true

// nonBlocking is not needed: opening a name never waits here.
const nonBlocking = 0

func samePath(a, b string) bool { return strings.EqualFold(a, b) }

func notEmpty(err error) bool {
	const dirNotEmpty = syscall.Errno(145)
	return errors.Is(err, dirNotEmpty)
}

// maxWatches is how many folders are watched; what is beyond is polled.
// Each costs a handle and a buffer.
const maxWatches = 256
