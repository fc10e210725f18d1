package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Create makes an empty file, or a folder when dir is set, and the folders above it
// that are missing. It fails with fs.ErrExist for a path that exists.
func (w *Workspace) Create(path string, dir bool) error {
	w.write.Lock()
	defer w.write.Unlock()
	p, err := w.open(path, toCreate)
	if err != nil {
		return err
	}
	defer p.close()
	if p.base == "." {
		return fmt.Errorf("%q: %w", path, fs.ErrExist)
	}
	if dir {
		err = p.dir.Mkdir(p.base, 0o777)
	} else {
		var f *os.File
		if f, err = p.dir.OpenFile(p.base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("%q: %w", path, safefile.Cause(err))
	}
	w.index.touch(true)
	return nil
}

// Rename moves a file or folder within one root. It replaces nothing: it fails with
// fs.ErrExist for a target that exists, except when only the case of a name changes. It
// moves a symlink itself, not its target.
func (w *Workspace) Rename(from, to string) error {
	w.write.Lock()
	defer w.write.Unlock()
	src, err := w.openEntry(from, toWrite)
	if err != nil {
		return err
	}
	defer src.close()
	dst, err := w.openEntry(to, toCreate)
	if err != nil {
		return err
	}
	defer dst.close()
	if src.root != dst.root {
		return fmt.Errorf("%q cannot move to %q, which is not in the same root: %w", from, to, ErrOutside)
	}
	was, err := src.dir.Lstat(src.base)
	if err != nil {
		return fmt.Errorf("%q: %w", from, safefile.Cause(err))
	}
	if is, err := dst.dir.Lstat(dst.base); err == nil && !(os.SameFile(was, is) && paths.Same(src.path, dst.path)) {
		return fmt.Errorf("%q: %w", to, fs.ErrExist)
	}
	if err := moveEntry(src, dst); err != nil {
		return fmt.Errorf("%q to %q: %w", from, to, safefile.Cause(err))
	}
	w.index.touch(true)
	return nil
}

// moveEntry renames through the folder that both share, or through their root. Either
// way, nothing outside the root can be reached.
func moveEntry(src, dst *place) error {
	if filepath.Dir(src.path) == filepath.Dir(dst.path) {
		return src.dir.Rename(src.base, dst.base)
	}
	root, err := os.OpenRoot(src.root)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Rename(filepath.Join(src.names...), filepath.Join(dst.names...))
}

// Delete removes a file, a symlink itself, or a folder. It removes a folder that is not
// empty only when recursive is set (otherwise ErrNotEmpty), with everything in it, a
// repository's .git too. It never removes a root.
func (w *Workspace) Delete(path string, recursive bool) error {
	w.write.Lock()
	defer w.write.Unlock()
	p, err := w.openEntry(path, toWrite)
	if err != nil {
		return err
	}
	defer p.close()
	if _, err := p.dir.Lstat(p.base); err != nil {
		return fmt.Errorf("%q: %w", path, safefile.Cause(err))
	}
	if recursive {
		err = p.dir.RemoveAll(p.base)
	} else {
		err = p.dir.Remove(p.base)
	}
	if notEmpty(err) {
		return fmt.Errorf("%q: %w", path, ErrNotEmpty)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", path, safefile.Cause(err))
	}
	w.index.touch(true)
	return nil
}

// openEntry is open for an operation on the name itself: it does not follow the last
// component when that is a symlink.
func (w *Workspace) openEntry(path string, why purpose) (*place, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	path = filepath.Clean(path)
	if l, err := w.locate(path); err == nil && len(l.names) == 0 {
		return nil, fmt.Errorf("%q is a folder that pollux serves: %w", path, fs.ErrPermission)
	}
	l, err := w.locate(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	l.names = append(l.names, name)
	l.path = filepath.Join(l.path, name)
	return l.open(why)
}
