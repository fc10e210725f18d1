// Package workspace handles the folders that a user works in. It resolves paths without
// leaving them, tells what is ignored or protected, lists, finds, reads and saves files,
// and watches them change.
package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pollux-companion/pollux/internal/paths"
)

// Bounds on what one call reads, returns or accepts.
const (
	// maxFile is the size in bytes up to which Read and Save take a file.
	maxFile = 16 << 20
	// MaxPath is the longest path in bytes that Linux opens, and maxDepth the most components it may have.
	MaxPath  = 4095
	maxDepth = 512
	// maxEntries is how many entries of one folder List returns.
	maxEntries = 5000
	// maxFound is how many files Find looks through, maxQuery how long its query may be in bytes.
	maxFound = 500_000
	maxQuery = 256
)

// Errors that callers react to, always wrapped with the path in question. Calls also
// return fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
var (
	// ErrBadPath: the path is not absolute, or no file can have it.
	ErrBadPath = errors.New("not a usable absolute path")
	// ErrOutside: the path, with its symlinks followed, is not in the workspace.
	ErrOutside = errors.New("outside the folders that pollux serves")
	// ErrProtected: the path is at or below a protected name (see protectedName).
	ErrProtected = errors.New("protected: pollux does not write there")
	// ErrBinary: an editor cannot hold the content exactly as text.
	ErrBinary = errors.New("not a text file in UTF-8")
	// ErrTooBig: larger than maxFile.
	ErrTooBig = errors.New("larger than 16 MiB")
	// ErrNotFile: a folder, device, FIFO or socket where a file is needed, or a file where a folder is.
	ErrNotFile = errors.New("not a regular file or folder of the kind needed")
	// ErrNotEmpty: a folder with something in it.
	ErrNotEmpty = errors.New("the folder is not empty")
	// ErrChanged: somebody exchanged the path while it was being opened.
	ErrChanged = errors.New("changed while it was being opened, try again")
)

// A ConflictError says that a file on the disk is not the one that the caller expected.
type ConflictError struct {
	Path string
	// Version is the version on the disk now, "" when the file is gone.
	Version string
}

func (e *ConflictError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("%q is gone from the disk; save again to create it anew", e.Path)
	}
	return fmt.Sprintf("%q has changed on disk since it was read; compare before overwriting it", e.Path)
}

// Options configure a Workspace; the zero value and nil are valid.
type Options struct {
	// ShareOutside lets Sharing allow files that lie outside the roots (SPEC C-8).
	ShareOutside bool
	// NeverShare lists the user's patterns for Sharing to refuse, in .gitignore's syntax relative to each root. A negated
	// pattern says that a file holds no secret, whatever its name.
	NeverShare []string
	// ExcludesFile is git's core.excludesFile, an absolute path; "" for none.
	ExcludesFile string
	// Saves is the folder for notes of running saves, for SweepSaves; "" for none.
	Saves string
	// Deniers are the agents whose own settings Denying obeys.
	Deniers []Denier
	// Withholds, when not nil, is called for a folder whose ignore file cannot be followed, once for each problem. It is
	// called from the goroutine that judges a file, and must not block.
	Withholds func(Withheld)
}

// A Workspace is the set of folders that one companion serves. Its methods may
// be called from any goroutine. It owns one goroutine at most, which builds the
// index of Find and ends by itself.
type Workspace struct {
	options  Options
	roots    atomic.Pointer[[]string]
	ignores  ignoreCache
	withheld withholding
	deniers  []denier
	index    index
	saves    saves
	write    sync.Mutex // held while a file is replaced, so that of two saves from one version, one is a conflict
}

// New returns the workspace of these folders, which must exist. It makes them absolute,
// follows their symlinks, and drops repetitions; the order stays.
func New(roots []string, o *Options) (*Workspace, error) {
	w := &Workspace{}
	if o != nil {
		w.options = *o
	}
	w.saves.dir = w.options.Saves
	w.ignores.init(w.options)
	for _, d := range w.options.Deniers {
		w.deniers = append(w.deniers, denier{Denier: d})
	}
	w.roots.Store(&[]string{})
	if err := w.SetRoots(roots); err != nil {
		return nil, err
	}
	return w, nil
}

// SetRoots replaces the folders. On an error they stay as they were.
func (w *Workspace) SetRoots(roots []string) error {
	real := make([]string, 0, len(roots))
	for _, r := range roots {
		c, err := canonicalFolder(r)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(real, func(have string) bool { return paths.Same(have, c) }) {
			real = append(real, c)
		}
	}
	w.roots.Store(&real)
	w.index.drop()
	return nil
}

// canonicalFolder makes path absolute and follows its symlinks. It fails when that is no folder.
func canonicalFolder(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("folder %q: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("folder %q: %w", path, err)
	}
	fi, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("folder %q: %w", path, err)
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("%q is not a folder: %w", path, ErrNotFile)
	}
	return real, nil
}

// Roots returns the folders, absolute and canonical; the caller must not change the slice.
func (w *Workspace) Roots() []string { return *w.roots.Load() }

// Contains reports whether path, absolute, lies in a root or is one, with the symlinks
// of its existing part followed. The path itself need not exist.
func (w *Workspace) Contains(path string) bool {
	_, err := w.locate(path)
	return err == nil
}

// Holds reports whether a folder lies in a root or is one. Like Within, it compares only the text of canonical paths.
func (w *Workspace) Holds(folder string) bool {
	_, ok := w.rootOf(folder)
	return ok
}

// RootOf returns the outermost root that holds a folder; "" for none.
func (w *Workspace) RootOf(folder string) string {
	root, _ := w.rootOf(paths.Real(folder))
	return root
}

// Within reports whether a root lies in one of the folders or is one.
func (w *Workspace) Within(folders []string) bool {
	return slices.ContainsFunc(w.Roots(), func(root string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return paths.Within(f, root) })
	})
}

// Overlaps reports whether a folder is in the workspace, or a root in a folder.
func (w *Workspace) Overlaps(folders []string) bool {
	return w.Within(folders) || slices.ContainsFunc(folders, w.Holds)
}

// rootOf returns the outermost root that holds the canonical path, because that one sees
// most of the path's names.
func (w *Workspace) rootOf(real string) (root string, ok bool) {
	for _, r := range w.Roots() {
		if paths.Within(r, real) && (!ok || len(r) < len(root)) {
			root, ok = r, true
		}
	}
	return root, ok
}
