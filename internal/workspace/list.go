package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// listTimeout ends a listing, incomplete, when somebody has written patterns that take
// too long.
const listTimeout = 3 * time.Second

// A Kind says what an entry of a folder is.
type Kind string

// The kinds of entries. A link is a symlink that leads out of the workspace or nowhere;
// any other symlink has the kind of its target.
const (
	kindFile   Kind = "file"
	kindFolder Kind = "dir"
	kindLink   Kind = "link"
)

// A DirEntry is one name in a folder.
type DirEntry struct {
	Name    string `json:"name"`
	Path    string `json:"path"` // absolute: the folder as the caller named it, and Name
	Kind    Kind   `json:"kind"`
	Ignored bool   `json:"ignored,omitempty"`
}

// List returns the entries of a folder: folders first, then in natural order (file2
// before file10). It leaves out ignored entries unless showIgnored is set, and always
// .git, devices, FIFOs and sockets. truncated says that entries are missing: there are
// more than maxEntries, or judging them took too long.
func (w *Workspace) List(dir string, showIgnored bool) (entries []DirEntry, truncated bool, err error) {
	p, err := w.open(dir, toRead)
	if err != nil {
		return nil, false, err
	}
	defer p.close()
	names, truncated, err := p.folder()
	if err != nil {
		return nil, false, err
	}
	rules := w.ignores.at(p.root, p.path)
	entries = make([]DirEntry, 0, len(names))
	deadline := time.Now().Add(listTimeout)
	for _, d := range names {
		if time.Now().After(deadline) {
			truncated = true
			break
		}
		e := DirEntry{Name: d.Name(), Path: filepath.Join(dir, d.Name())}
		var ok bool
		if e.Kind, ok = w.kindOf(p.path, d); !ok || e.Name == ".git" || safefile.IsTemp(e.Name) {
			continue
		}
		// To git, a link to a folder is not a folder, so patterns for folders do not fit it.
		e.Ignored = rules.git(e.Name, d.IsDir())
		if !e.Ignored || showIgnored {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, compareEntries)
	return entries, truncated, nil
}

// folder reads the names of the place's folder, at most maxEntries.
func (p *place) folder() (names []fs.DirEntry, truncated bool, err error) {
	before, err := p.dir.Lstat(p.base)
	if err != nil {
		return nil, false, fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	}
	if !before.IsDir() {
		return nil, false, fmt.Errorf("%q: %w", p.path, ErrNotFile)
	}
	f, err := p.dir.OpenFile(p.base, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, false, fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	}
	defer f.Close()
	names, err = readDir(f, p.path, maxEntries+1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("%q: %w", p.path, safefile.Cause(err))
	}
	if len(names) > maxEntries {
		return names[:maxEntries], true, nil
	}
	return names, false, nil
}

// kindOf returns the kind of an entry of the canonical folder dir; ok is false for
// entries that an editor cannot use.
func (w *Workspace) kindOf(dir string, d fs.DirEntry) (k Kind, ok bool) {
	switch {
	case d.IsDir():
		return kindFolder, true
	case d.Type().IsRegular():
		return kindFile, true
	case d.Type()&fs.ModeSymlink == 0:
		return "", false
	}
	path := filepath.Join(dir, d.Name())
	fi, err := os.Stat(path)
	switch {
	case err != nil || !w.Contains(path):
		return kindLink, true
	case fi.IsDir():
		return kindFolder, true
	case fi.Mode().IsRegular():
		return kindFile, true
	}
	return "", false
}

func compareEntries(a, b DirEntry) int {
	if (a.Kind == kindFolder) != (b.Kind == kindFolder) {
		if a.Kind == kindFolder {
			return -1
		}
		return 1
	}
	return natural(a.Name, b.Name)
}

// natural compares names as a person does: it ignores case, and compares runs of digits
// by their value. Names that are equal so are compared byte by byte.
func natural(a, b string) int {
	x, y := strings.ToLower(a), strings.ToLower(b)
	for x != "" && y != "" {
		if isDigit(x[0]) && isDigit(y[0]) {
			var m, n string
			m, x = digits(x)
			n, y = digits(y)
			if len(m) != len(n) {
				return len(m) - len(n)
			}
			if c := strings.Compare(m, n); c != 0 {
				return c
			}
			continue
		}
		if x[0] != y[0] {
			return int(x[0]) - int(y[0])
		}
		x, y = x[1:], y[1:]
	}
	if c := len(x) - len(y); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits splits s after its leading digits, which it returns without leading zeros.
func digits(s string) (number, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
