package mcp

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// ReadOld reads the text that a diff is against; exists is false when there is no file. It waits neither for the writer of a
// FIFO nor for the kernel, and reads at most maxOld bytes. The error tells a person why the text cannot be shown.
func ReadOld(path string) (old string, exists bool, err error) {
	b, _, err := safefile.ReadRegular(path, maxOld)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case errors.Is(err, safefile.ErrTooBig):
		return "", false, fmt.Errorf("%q is larger than %d MiB", path, maxOld>>20)
	case errors.Is(err, safefile.ErrNotRegular), errors.Is(err, safefile.ErrChanging):
		return "", false, fmt.Errorf("%q %w", path, err)
	case err != nil:
		return "", false, fmt.Errorf("%q cannot be read: %w", path, err)
	case text.IsBinary(b):
		return "", false, fmt.Errorf("%q is not text in UTF-8", path)
	}
	return string(b), true, nil
}

// Files looks at the files of proposals as the sessions do.
type Files struct{}

// Read implements review.Files.
func (Files) Read(path string) review.File {
	old, exists, err := ReadOld(path)
	if err != nil {
		return review.File{Exists: true, Problem: safefile.Cause(err).Error()}
	}
	return review.File{Text: old, Exists: exists}
}
