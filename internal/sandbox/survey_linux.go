package sandbox

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/paths"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// A survey is what a workspace holds before a run: its protected names, and the folders as they were, so that the
// next walk can skip unchanged ones.
type survey struct {
	top    *folder
	began  int64
	times  map[uint64]bool
	found  []find
	closed []string // folders that could not be searched, relative to the workspace
}

// A find is a protected name, or a git repository recognised by its contents.
type find struct {
	Path     string `json:"path"` // relative to the workspace; "" for the workspace itself
	identity        // for a repository, its folder's
	Link     string `json:"link,omitempty"` // a link's target
	shape    bool
}

// survey walks through a workspace.
func (t tree) survey(root string) (*survey, error) {
	fd, err := openFolder(string(t) + root)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	s := &survey{began: time.Now().UnixNano(), times: map[uint64]bool{}}
	w := &walk{times: s.times, found: s.note, lost: func(w *walk, name string, st status, _ error) {
		if st.mayEnter() {
			s.closed = append(s.closed, w.path(name))
		}
	}}
	s.top = w.run(fd, nil)
	return s, nil
}

func (s *survey) note(w *walk, dir int, name string) (whole bool) {
	f := find{Path: w.path(name)}
	if f.shape = name == headName; f.shape {
		f.Path, name = w.path(""), ""
	}
	st, err := statAt(dir, name)
	if err != nil {
		return false // removed meanwhile
	}
	f.identity = st.identity
	if f.isLink() {
		f.Link, _ = readlinkAt(dir, name) // if removed meanwhile, it counts as new when seen again
	}
	s.found = append(s.found, f)
	return f.shape && f.Path != ""
}

// protectNested makes the protected names that a survey found read-only. Their parent folders stay movable: pinning
// them would split the workspace into mounts, and nothing could be renamed between those. Whatever the command puts
// in a moved folder's place is found by the sweep after the run.
func (l *layout) protectNested(root string) error {
	s, err := l.survey(root)
	if errors.Is(err, unix.ENOSYS) { // an old kernel, or pollux runs inside a sandbox: nothing else would work either
		return &SetupError{Phase: "mounts", Cause: "the system call openat2 (Linux 5.6) is missing", Fix: "run it outside of any other sandbox, on a newer kernel"}
	}
	if err != nil {
		return policyError("the workspace %q cannot be searched: %v", root, err)
	}
	l.watched.Root, l.watched.survey, l.watched.Known = root, s, s.found
	for _, f := range s.found {
		path := filepath.Join(root, f.Path)
		switch {
		case f.isLink():
			l.way(path)
		case f.Path == "": // a bare repository, or one with its working tree elsewhere
			l.protect(root, []string{headName, "config", "config.worktree", "commondir", "hooks", "info"})
		case l.writable(path):
			l.bind(path, false)
			l.note(path, noteProtected)
		}
	}
	for _, rel := range s.closed {
		if path := filepath.Join(root, rel); l.writable(path) && rel != "" {
			l.bind(path, false)
			l.note(path, noteClosed)
		}
	}
	return nil
}

// writable says whether the command may write at a path.
func (l *layout) writable(path string) bool {
	m, ok := l.over(path)
	return ok && m.Write || !ok && l.root.Write
}

// maxLinks bounds how many links a path may go through, as in the kernel.
const maxLinks = 40

// way protects whatever programs find when they follow a path. It pins each folder on the way, holds each link, and
// makes the end read-only. If the path does not exist yet, way watches it, and what the command makes there is moved
// aside.
func (l *layout) way(path string) {
	done, rest := "/", path
	for links := 0; ; {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			break
		}
		name, after, _ := strings.Cut(rest, "/")
		next := filepath.Join(done, name) // dots resolve correctly: done holds no link
		info, err := l.lstat(next)
		if err != nil {
			if strings.Contains("/"+after+"/", "/../") {
				after = "" // where ".." leads depends on what is made there
			}
			l.watch(watched{Path: filepath.Join(next, after)})
			return
		}
		if info.Mode().Type() != fs.ModeSymlink {
			done, rest = next, after
			continue
		}
		to, err := l.readlink(next)
		if links++; err != nil || links > maxLinks {
			return
		}
		l.hold(next, to)
		if !filepath.IsAbs(to) {
			to = filepath.Join(done, to)
		}
		done, rest = "/", to+"/"+after
	}
	if l.holdsRoot(done) || !l.writable(done) {
		return
	}
	l.bind(done, false)
	l.note(done, noteProtected)
	l.pin(filepath.Dir(done))
}

// hold mounts a link over itself, so that the command cannot change it. Not every kernel can do that; then the sweep
// puts a changed link back.
func (l *layout) hold(path, to string) {
	if _, taken := l.mounts[path]; taken || !l.writable(path) {
		return
	}
	l.add(inside.Mount{Show: inside.ShowHeld, Source: path, Target: path})
	l.note(path, "→ "+to)
	l.watch(watched{Path: path, Link: to})
	l.pin(filepath.Dir(path))
}

// watch notes a path to check after the run, and pins the folders above it.
func (l *layout) watch(w watched) {
	if !l.writable(w.Path) {
		return
	}
	for _, other := range l.watched.Paths {
		if other == w {
			return
		}
	}
	l.watched.Paths = append(l.watched.Paths, w)
	for dir := filepath.Dir(w.Path); dir != "/"; dir = filepath.Dir(dir) {
		if l.exists(dir) {
			l.pin(dir)
			return
		}
	}
}

// holdsRoot says whether a path is or contains a folder that the command may write to as a whole.
func (l *layout) holdsRoot(path string) bool {
	for _, a := range l.watched.Anchors {
		if paths.Within(path, a.Path) {
			return true
		}
	}
	return path == "/"
}

// isProtected says whether a name is protected. Names with a leading dot match in any spelling: some file systems
// take .GIT for .git, and ignore invisible characters.
func isProtected(name string) bool {
	if name == "" {
		return false
	}
	if name[0] >= utf8.RuneSelf {
		name = visible(name)
	}
	if !strings.HasPrefix(name, ".") {
		return slices.Contains(protectedNames(), name)
	}
	if strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		name = visible(name)
	}
	return slices.ContainsFunc(protectedNames(), func(p string) bool { return strings.EqualFold(p, name) })
}

// visible removes the characters that file systems ignore in names.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, name)
}
