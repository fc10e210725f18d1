package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Text is a file's text as an editor holds it.
type Text struct {
	Path    string // canonical
	Content string // without byte order mark, every line ending a line feed
	// Version names the bytes on the disk. Compare it only; its form may change.
	Version string
	Shape   text.Shape
	// ReadOnly says that Save would be refused: by the file's mode or because it is protected.
	ReadOnly bool
}

// Read reads a text file of at most maxFile bytes.
func (w *Workspace) Read(path string) (Text, error) {
	p, err := w.open(path, toRead)
	if err != nil {
		return Text{}, err
	}
	defer p.close()
	data, fi, err := p.read()
	if err != nil {
		return Text{}, err
	}
	if text.IsBinary(data) {
		return Text{}, fmt.Errorf("%q: %w", path, ErrBinary)
	}
	s := string(data)
	return Text{
		Path: p.path, Content: text.ToLF(s), Version: versionOf(data), Shape: text.ShapeOf(s),
		ReadOnly: p.protected() || p.writable(fi) != nil,
	}, nil
}

// unreadable is the version of a path without a readable file: too big, a folder, no
// permission. No Text ever has it.
const unreadable = "unreadable"

// Version returns the version of a file now, "" when it does not exist. A file that Read
// would refuse has a version that no Text has, so that a caller with a Text looks again.
func (w *Workspace) Version(path string) string {
	p, err := w.open(path, toRead)
	if err == nil {
		defer p.close()
		var data []byte
		if data, _, err = p.read(); err == nil {
			return versionOf(data)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return unreadable
}

// Save writes what an editor made of the file's version base. It restores byte order
// mark and line endings from the bytes on the disk (SPEC F-6). When the disk holds
// another version, it returns a *ConflictError, unless force is set. base is "" for a
// new file. Save writes the target of a symlink, and leaves the link.
func (w *Workspace) Save(path, content, base string, force bool) (version string, err error) {
	w.write.Lock()
	defer w.write.Unlock()
	p, err := w.openFile(path, toWrite)
	if err != nil {
		return "", err
	}
	defer p.close()
	old, fi, err := p.read()
	now := ""
	switch {
	case err == nil:
		now = versionOf(old)
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, ErrTooBig):
		now = unreadable // a conflict, unless forced
	default:
		return "", err
	}
	if now != base && !force {
		return "", &ConflictError{Path: p.path, Version: now}
	}
	data := []byte(content)
	if !text.IsBinary(old) {
		data = []byte(text.FromLF(string(old), content))
	}
	if len(data) > maxFile {
		return "", fmt.Errorf("%q: %w", path, ErrTooBig)
	}
	if now != "" && now == versionOf(data) {
		return now, nil
	}
	err = p.replace(data, fi)
	if errors.Is(err, ErrChanged) {
		return "", &ConflictError{Path: p.path, Version: w.Version(p.path)}
	}
	if err != nil {
		return "", err
	}
	w.index.touch(fi == nil)
	return versionOf(data), nil
}

// WriteFile replaces the file at path by content, byte for byte, or makes it with the
// folders that are missing (SPEC T-11). It is atomic, and keeps the file's mode. It
// writes only inside the workspace after symlinks are followed, and never at or below a
// protected name. The error wraps ErrBadPath, ErrOutside, ErrProtected, ErrNotFile,
// ErrChanged, or one of fs.
func (w *Workspace) WriteFile(path string, content []byte) error {
	w.write.Lock()
	defer w.write.Unlock()
	p, err := w.openFile(path, toCreate)
	if err != nil {
		return err
	}
	defer p.close()
	fi, err := p.dir.Lstat(p.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fi = nil
	case err != nil:
		return fmt.Errorf("%q: %w", path, safefile.Cause(err))
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%q: %w", path, ErrNotFile)
	}
	if err := p.replace(content, fi); err != nil {
		return err
	}
	w.index.touch(fi == nil)
	return nil
}

// openFile is open for a path that must name a file: "x/" and "x/." do not.
func (w *Workspace) openFile(path string, why purpose) (*place, error) {
	if p := strings.TrimSuffix(path, "."); p != "" && os.IsPathSeparator(p[len(p)-1]) {
		return nil, fmt.Errorf("%.200q: %w", path, ErrNotFile)
	}
	return w.open(path, why)
}

func versionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// read returns the whole file, unless it is larger than maxFile.
func (p *place) read() ([]byte, fs.FileInfo, error) {
	f, fi, err := p.file()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if fi.Size() > maxFile {
		return nil, fi, fmt.Errorf("%q: %w", p.path, ErrTooBig)
	}
	data := make([]byte, 0, fi.Size()+1)
	data, err = readAll(io.LimitReader(f, maxFile+1), data)
	if err != nil {
		return nil, fi, fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	}
	if len(data) > maxFile {
		return nil, fi, fmt.Errorf("%q: %w", p.path, ErrTooBig)
	}
	return data, fi, nil
}

// readAll appends all of r to b, which has room for the expected size.
func readAll(r io.Reader, b []byte) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// writable says why the file may not be written. Replacing it needs only the folder's
// permission, but a file that its owner made read-only is respected, also for root.
func (p *place) writable(fi fs.FileInfo) error {
	if fi.Mode().Perm()&0o222 == 0 {
		return fmt.Errorf("%q is read-only: %w", p.path, fs.ErrPermission)
	}
	f, err := p.dir.OpenFile(p.base, os.O_WRONLY|safefile.NoWait, 0)
	if err != nil {
		return fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	}
	return f.Close()
}

// replace puts data atomically into the place of the file. old is what the caller saw
// there, nil for no file. When something else is there by now, replace leaves it and
// returns ErrChanged.
func (p *place) replace(data []byte, old fs.FileInfo) error {
	if p.base == "." {
		return fmt.Errorf("%q: %w", p.path, ErrNotFile)
	}
	o := safefile.Options{KeepMode: true, Temp: safefile.TempName()}
	defer p.saves.note(filepath.Join(filepath.Dir(p.path), o.Temp))()
	if old == nil {
		mode, err := p.newMode(o.Temp)
		if err != nil {
			return fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
		}
		o.Mode = mode
	} else if err := p.writable(old); err != nil {
		return err
	}
	now, err := p.dir.Lstat(p.base)
	switch {
	case old == nil && errors.Is(err, fs.ErrNotExist):
	case err == nil && old != nil && os.SameFile(now, old) && now.ModTime().Equal(old.ModTime()) && now.Size() == old.Size():
	default:
		return fmt.Errorf("%q: %w", p.path, ErrChanged)
	}
	return safefile.WriteIn(p.dir, p.base, data, &o)
}

// newMode returns the mode that the system gives a new file in this folder: 0666, less
// the umask and the folder's own default.
func (p *place) newMode(name string) (fs.FileMode, error) {
	f, err := p.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return 0, err
	}
	fi, err := f.Stat()
	f.Close()
	_ = p.dir.Remove(name)
	if err != nil {
		return 0, err
	}
	return fi.Mode().Perm(), nil
}

// Restore undoes a change: where the file still holds now (apart from line endings and
// byte order mark), it writes old back, byte for byte; with remove, it deletes the file.
// When the file holds something else, it returns a *ConflictError.
func (w *Workspace) Restore(path, now, old string, remove bool) error {
	w.write.Lock()
	defer w.write.Unlock()
	p, err := w.open(path, toWrite)
	if err != nil {
		return err
	}
	defer p.close()
	data, fi, err := p.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || text.ToLF(string(data)) != text.ToLF(now) {
		c := &ConflictError{Path: p.path}
		if err == nil {
			c.Version = versionOf(data)
		}
		return c
	}
	if !remove {
		return p.replace([]byte(old), fi)
	}
	w.index.touch(true)
	if err := p.dir.Remove(p.base); err != nil {
		return fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	}
	return nil
}

// RemoveEmpty removes up to n of the folders above a path, from the innermost on, as long as they are empty, and
// never a root.
func (w *Workspace) RemoveEmpty(path string, n int) {
	w.write.Lock()
	defer w.write.Unlock()
	l, err := w.locate(path)
	if err != nil || l.protected() {
		return
	}
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return
	}
	defer root.Close()
	for i := len(l.names) - 1; i > 0 && n > 0; i, n = i-1, n-1 {
		dir := filepath.Join(l.names[:i]...)
		if fi, err := root.Lstat(dir); err != nil || !fi.IsDir() || root.Remove(dir) != nil {
			return
		}
		w.index.touch(true)
	}
}
