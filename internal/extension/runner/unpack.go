package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// unpackPrefix begins the names of folders with an unpacked extension.
const unpackPrefix = "pollux-tool-"

// An unpacked is a private copy of a snapshot on disk, for one run that cannot get the files in memory: it has no
// sandbox, its sandbox has no files of its own, or the files are too large. It is locked during the run, so that a
// later run can remove what a killed pollux left.
type unpacked struct {
	base string // contains the lock and the content
	lock *os.File
}

// dir returns the folder of the content.
func (u *unpacked) dir() string { return filepath.Join(u.base, "extension") }

// close removes the copy.
func (u *unpacked) close() {
	u.lock.Close() // first: Windows removes no open file
	_ = os.RemoveAll(u.base)
}

// unpack writes the snapshot into a private temporary folder.
func (s *snapshot) unpack() (*unpacked, error) {
	sweep(os.TempDir())
	base, err := os.MkdirTemp("", unpackPrefix)
	if err != nil {
		return nil, fmt.Errorf("the extension cannot be unpacked: %w", err)
	}
	base = paths.Real(base)
	u := &unpacked{base: base}
	if u.lock, err = os.OpenFile(filepath.Join(base, "lock"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_, err = safefile.TryLock(u.lock)
	}
	if err == nil {
		err = s.writeTo(u.dir())
	}
	if err != nil {
		u.close()
		return nil, fmt.Errorf("the extension cannot be unpacked: %w", err)
	}
	return u, nil
}

// writeTo writes every file. Files that are not in memory are read again, and must still match their hash.
func (s *snapshot) writeTo(dir string) error {
	from, err := manifest.OpenFolder(s.dir)
	if err != nil {
		return err
	}
	defer from.Close()
	for _, f := range s.files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		mode := fs.FileMode(0o400)
		if f.Executable {
			mode = 0o500
		}
		data := f.Data
		if data == nil {
			if data, err = s.again(from, f.Name); err != nil {
				return err
			}
		}
		if err := os.WriteFile(path, data, mode); err != nil {
			return err
		}
	}
	return nil
}

// again reads a file that was too large to keep in memory.
func (s *snapshot) again(from *os.Root, name string) ([]byte, error) {
	return s.read(from, s.large[name])
}

// sweep removes the folders of runs that have ended.
func sweep(tmp string) {
	old, err := filepath.Glob(filepath.Join(tmp, unpackPrefix+"*"))
	if err != nil {
		return // the folder's name contains a bracket
	}
	for _, base := range old {
		f, err := os.OpenFile(filepath.Join(base, "lock"), os.O_RDWR, 0)
		if err != nil {
			if info, e := os.Lstat(base); errors.Is(err, fs.ErrNotExist) && e == nil && time.Since(info.ModTime()) > time.Minute {
				_ = os.RemoveAll(base) // another user's folder cannot be removed and stays
			}
			continue
		}
		ok, err := safefile.TryLock(f)
		f.Close()
		if err == nil && ok {
			_ = os.RemoveAll(base)
		}
	}
}
