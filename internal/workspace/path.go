package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A location is a path within a root, before anything is opened.
type location struct {
	root  string   // canonical
	names []string // components below the root; none for the root itself
	path  string   // canonical: root and names joined
}

// isSystems says whether an error comes from the operating system.
func isSystems(err error) bool {
	var pathError *fs.PathError
	return errors.As(err, &pathError) || errors.Is(err, syscall.ENOTDIR)
}

// locate resolves path to its place in a root. The last components need not exist yet.
// The result may be outdated at once, so open checks it again.
func (w *Workspace) locate(path string) (location, error) {
	if err := checkPath(path); err != nil {
		return location{}, err
	}
	real, err := paths.Resolve(filepath.Clean(path))
	switch {
	case errors.Is(err, paths.ErrDangling):
		return location{}, fmt.Errorf("%q: %v: %w", path, err, ErrOutside)
	case err != nil && !isSystems(err): // links form a circle
		return location{}, fmt.Errorf("%q: %v: %w", path, err, ErrBadPath)
	case err != nil:
		return location{}, fmt.Errorf("%q: %w", path, safefile.Cause(err))
	}
	root, ok := w.rootOf(real)
	if !ok {
		return location{}, fmt.Errorf("%q: %w", path, ErrOutside)
	}
	rel := strings.Trim(real[len(root):], string(filepath.Separator))
	l := location{root: root, path: real}
	if rel != "" {
		if !filepath.IsLocal(rel) {
			return location{}, fmt.Errorf("%q: %w", path, ErrBadPath)
		}
		l.names = strings.Split(rel, string(filepath.Separator))
	}
	return l, nil
}

// checkPath refuses paths that no honest caller sends. It refuses ".." instead of
// cleaning it away: behind a symlink, the system takes ".." differently.
func checkPath(path string) error {
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	switch {
	case !filepath.IsAbs(path), strings.ContainsRune(path, 0), len(path) > MaxPath, len(names) > maxDepth:
		return fmt.Errorf("%.200q: %w", path, ErrBadPath)
	}
	for _, n := range names {
		if n == ".." || len(n) > 255 {
			return fmt.Errorf("%.200q: %w", path, ErrBadPath)
		}
	}
	return nil
}

func (l location) protected() bool { return slices.ContainsFunc(l.names, protectedName) }

// A place is a located path whose folder is held open. Nobody can then lead an operation
// elsewhere by exchanging a name on the way.
type place struct {
	location
	dir   *os.Root // the folder of base
	base  string   // the last component; "." for a root itself
	saves saves
}

func (p *place) close() { p.dir.Close() }

// A purpose says why a place is opened.
type purpose int

const (
	toRead   purpose = iota
	toWrite          // refuses protected names
	toCreate         // like toWrite, and makes the missing folders on the way
)

// open locates path and descends to its folder component by component, following no
// link. locate has resolved every link, so a link on the way was put there since, and is
// an attack or a race.
func (w *Workspace) open(path string, why purpose) (*place, error) {
	l, err := w.locate(path)
	if err != nil {
		return nil, err
	}
	p, err := l.open(why)
	if err != nil {
		return nil, err
	}
	p.saves = w.saves
	return p, nil
}

func (l location) open(why purpose) (*place, error) {
	if why != toRead && l.protected() {
		return nil, fmt.Errorf("%q: %w", l.path, ErrProtected)
	}
	dir, err := os.OpenRoot(l.root)
	if err != nil {
		return nil, err
	}
	p := &place{location: l, dir: dir, base: "."}
	for i, name := range l.names {
		if i == len(l.names)-1 {
			p.base = name
			break
		}
		next, err := descend(p.dir, name, why == toCreate)
		p.dir.Close()
		if err != nil {
			return nil, fmt.Errorf("%q: %w", l.path, safefile.Cause(err))
		}
		p.dir = next
	}
	return p, nil
}

// descend opens a folder in dir; with create, it makes the folder first.
func descend(dir *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	before, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case before.Mode()&fs.ModeSymlink != 0:
		return nil, ErrChanged
	case !before.IsDir():
		return nil, ErrNotFile
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err != nil || !os.SameFile(before, after) {
		next.Close()
		return nil, ErrChanged
	}
	return next, nil
}

// file opens the place for reading. It never waits: it refuses a FIFO before opening it.
// When a FIFO replaces the file in between, opening does not block, and it is refused
// afterwards.
func (p *place) file() (*os.File, fs.FileInfo, error) {
	before, err := p.dir.Lstat(p.base)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	case before.Mode()&fs.ModeSymlink != 0:
		return nil, nil, fmt.Errorf("%q: %w", p.path, ErrChanged)
	case !before.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%q: %w", p.path, ErrNotFile)
	}
	f, err := p.dir.OpenFile(p.base, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	}
	after, err := f.Stat()
	if err != nil || !os.SameFile(before, after) {
		f.Close()
		return nil, nil, fmt.Errorf("%q: %w", p.path, ErrChanged)
	}
	if err := safefile.OnDisk(f); err != nil { // a build's root inside the workspace may have a mounted /proc
		f.Close()
		return nil, nil, fmt.Errorf("%q: %v: %w", p.path, err, ErrNotFile)
	}
	return f, after, nil
}
