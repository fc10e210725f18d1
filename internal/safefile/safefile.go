// Package safefile replaces files atomically, keeps private folders private, and reads small private files without
// trusting whatever is at their path. Its errors do not name a path that their message already names.
package safefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Options say how Write replaces a file; nil means the zero value.
type Options struct {
	// Mode is the permission of a new file, or of every file without KeepMode; 0 means 0600. The umask does not
	// apply.
	Mode fs.FileMode
	// KeepMode keeps the permissions of the replaced file and, as far as the system allows, its owner and group.
	KeepMode bool
	// Volatile skips the flush to disk, for files that are meaningless after a restart of the machine. Other
	// processes still see the old or the new content, never a part.
	Volatile bool
	// Temp is the name of the temporary file, from TempName; "" means a new one.
	Temp string
}

func (o *Options) orDefault() Options {
	v := Options{}
	if o != nil {
		v = *o
	}
	if v.Mode == 0 {
		v.Mode = 0o600
	}
	return v
}

// tempPrefix starts the name of every temporary file of this package.
const tempPrefix = ".pollux-tmp-"

// IsTemp reports whether name (the last element of a path) is a temporary file of this package. Watchers and listings
// leave it out.
func IsTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// TempName returns a new name for a temporary file.
func TempName() string { return tempPrefix + rand.Text() }

// RemoveOwn removes a regular file of this user. It refuses links, folders and other users' files (ErrNotPrivate).
func RemoveOwn(path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	base := filepath.Base(path)
	info, err := root.Lstat(base)
	if err != nil {
		return err
	}
	if who, own := owner(info); !own {
		return &notPrivate{fmt.Sprintf("%q belongs to %s, not to you", path, who)}
	}
	if !info.Mode().IsRegular() {
		return &notPrivate{fmt.Sprintf("%q is not a regular file", path)}
	}
	return root.Remove(base)
}

// Write replaces or creates the file at path, so that a reader sees either the old content or all of data. The folder
// must exist. It replaces a symlink at path and does not follow it; resolve it first if you want that. It is safe for
// concurrent use; the last one wins.
func Write(path string, data []byte, o *Options) error { return write(path, whole(data), o) }

// WritePieces is Write for large texts that follow each other. It does not put them together.
func WritePieces(path string, pieces []string, o *Options) error {
	return write(path, func(f *os.File) error {
		for _, p := range pieces {
			if _, err := f.WriteString(p); err != nil {
				return err
			}
		}
		return nil
	}, o)
}

// A fill writes a new file's content.
type fill func(*os.File) error

func whole(data []byte) fill {
	return func(f *os.File) error { _, err := f.Write(data); return err }
}

func write(path string, content fill, o *Options) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, Cause(err))
	}
	defer root.Close()
	if err := writeAt(root, filepath.Base(path), content, o.orDefault()); err != nil {
		return fmt.Errorf("writing %q: %w", path, Cause(err))
	}
	return nil
}

// WriteIn is Write for a file at name, relative to root, that never leaves root. It refuses a symlinked folder that
// leads out, even one that becomes a symlink at this very moment.
func WriteIn(root *os.Root, name string, data []byte, o *Options) error {
	path := filepath.Join(root.Name(), name)
	dir, err := root.OpenRoot(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, Cause(err))
	}
	defer dir.Close()
	if err := writeAt(dir, filepath.Base(name), whole(data), o.orDefault()); err != nil {
		return fmt.Errorf("writing %q: %w", path, Cause(err))
	}
	return nil
}

// writeAt does the work inside one open folder, so that renaming or exchanging the folder meanwhile cannot redirect
// any step.
func writeAt(dir *os.Root, base string, content fill, o Options) (err error) {
	mode := o.Mode.Perm()
	old, statErr := dir.Lstat(base)
	switch {
	case statErr == nil && old.IsDir():
		return fmt.Errorf("%q is a directory", base)
	case statErr == nil && o.KeepMode && old.Mode().IsRegular():
		mode = old.Mode().Perm()
	default:
		old = nil
	}
	temp := o.Temp
	if temp == "" {
		temp = TempName()
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // a second Close is harmless
			_ = dir.Remove(temp)
		}
	}()
	if err = content(f); err != nil {
		return err
	}
	if old != nil {
		keepOwner(f, old) // before the mode, because a change of owner may reset it
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if !o.Volatile {
		if err = f.Sync(); err != nil {
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	return dir.Rename(temp, base)
}

// ErrNotPrivate marks a file or folder that others may have made or may change.
var ErrNotPrivate = errors.New("not private")

// notPrivate is an ErrNotPrivate that names the file or folder, the reason, and what to do.
type notPrivate struct{ text string }

func (e *notPrivate) Error() string        { return e.text }
func (e *notPrivate) Is(target error) bool { return target == ErrNotPrivate }

// PrivateDir makes sure that path is a folder of the user in which nobody else can create or exchange files. It
// creates a missing one 0700 with its parents, and closes one of the user's that others may write to. It refuses a
// symlink and another user's folder (ErrNotPrivate).
func PrivateDir(path string) error {
	if err := os.Mkdir(path, 0o700); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("creating the folder %q: %w", path, Cause(err))
		}
	} else if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating the folder %q: %w", path, Cause(err))
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("looking at the folder %q: %w", path, Cause(err))
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return &notPrivate{fmt.Sprintf("%q is a symbolic link, which somebody else may have put there; remove it (rm %q) and try again", path, path)}
	case !info.IsDir():
		return &notPrivate{fmt.Sprintf("%q is in the way: it is a file and must be a folder; remove it and try again", path)}
	}
	return checkOwnDir(path, info)
}

// OpenPrivate opens a file of the user for reading. It follows no symlink, does not block on a pipe, and
// refuses anything but a regular file of this user (ErrNotPrivate). A missing file is fs.ErrNotExist.
func OpenPrivate(path string) (*os.File, fs.FileInfo, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %q: %w", path, Cause(err))
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("reading %q: %w", path, Cause(err))
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, nil, &notPrivate{fmt.Sprintf("%q is not a regular file; remove it and try again", path)}
	}
	if who, own := owner(info); !own {
		f.Close()
		return nil, nil, &notPrivate{fmt.Sprintf("%q belongs to %s, not to you; ask them to remove it", path, who)}
	}
	return f, info, nil
}

// ReadPrivate reads a file of the user, at most max bytes. It opens the file like OpenPrivate.
func ReadPrivate(path string, max int64) ([]byte, error) {
	f, info, err := OpenPrivate(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > max {
		return nil, fmt.Errorf("reading %q: it has %d bytes, and %d are the most for such a file", path, info.Size(), max)
	}
	// The file may have grown since; the limit still holds.
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, Cause(err))
	}
	if int64(len(data)) > max {
		return nil, fmt.Errorf("reading %q: it grew beyond %d bytes", path, max)
	}
	return data, nil
}
