package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// kept holds the earlier contents of files, to restore them.
type kept []keptFile

type keptFile struct {
	path string
	data []byte // nil if there was no file
}

// keep reads the files. It skips anything that is not a regular file: changes write no such paths.

func keep(paths ...string) (kept, error) {
	var k kept
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && !info.Mode().IsRegular() {
			continue
		}
		data, err := readAtMost(p, maxOwnFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		k = append(k, keptFile{p, data})
	}
	return k, nil
}

func (k kept) restore() error {
	var all []error
	for _, f := range k {
		now, err := readAtMost(f.path, maxOwnFile)
		switch {
		case err == nil && f.data != nil && bytes.Equal(now, f.data), err != nil && f.data == nil:
		case f.data == nil:
			all = append(all, os.Remove(f.path))
		default:
			all = append(all, safefile.Write(paths.Real(f.path), f.data, &safefile.Options{Mode: 0o600, KeepMode: true}))
		}
	}
	return errors.Join(all...)
}
