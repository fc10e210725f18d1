package gemini

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// readOld reads the text that a diff is against; exists is false when there is
// no file. It neither waits (for a writer of a FIFO) nor reads without bound.
func readOld(path string) (old string, exists bool, err error) {
	f, err := openWithoutWaiting(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", false, err
	case info.IsDir():
		return "", false, fmt.Errorf("%q is a folder", path)
	case !info.Mode().IsRegular():
		return "", false, fmt.Errorf("%q is not a regular file", path)
	case info.Size() > MaxOld:
		return "", false, fmt.Errorf("%q is larger than %d MiB", path, MaxOld>>20)
	}
	b, err := readUpTo(f, info.Size())
	switch {
	case err != nil:
		return "", false, err
	case len(b) > MaxOld:
		return "", false, fmt.Errorf("%q is larger than %d MiB", path, MaxOld>>20)
	case text.IsBinary(b):
		return "", false, fmt.Errorf("%q is not text in UTF-8", path)
	}
	return string(b), true, nil
}

// readUpTo reads a file that is said to have size bytes, one byte past MaxOld
// at the most. Some systems' special files say 0 and have more.
func readUpTo(f *os.File, size int64) ([]byte, error) {
	b := make([]byte, 0, size+512)
	r := io.LimitReader(f, MaxOld+1)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
