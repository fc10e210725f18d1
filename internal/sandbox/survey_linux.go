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

// A survey is what a workspace holds before a command: what is protected, and
// by what the next walk knows which folders have changed.
type survey struct {
	top    *folder
	began  int64
	times  map[uint64]bool
	found  []find
	closed []string // folders that could not be searched, below the workspace
}

// A find is a protected name, or a repository by its shape.
type find struct {
	Path     string `json:"path"` // below the workspace; "" for the workspace itself
	identity        // of the folder, for a repository
	Link     string `json:"link,omitempty"` // where a link leads
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
		return false // gone meanwhile
	}
	f.identity = st.identity
	if f.isLink() {
		f.Link, _ = readlinkAt(dir, name) // gone meanwhile, then it is new when it is seen again
	}
	s.found = append(s.found, f)
	return f.shape && f.Path != ""
}

// protectNested makes what a survey found below the top read-only. The folders
// above can still be moved, or the workspace would fall apart in pieces between
// which nothing can be renamed; what then stands in their place is found after
// the command.
func (l *layout) protectNested(root string) error {
	s, err := l.survey(root)
	if errors.Is(err, unix.ENOSYS) { // an old kernel, or the inside of a sandbox: nothing else would work there either
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
		case f.Path == "": // a bare repository, or one whose working tree is elsewhere
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

// writable says whether a path lies where the command may write.
func (l *layout) writable(path string) bool {
	m, ok := l.over(path)
	return ok && m.Write || !ok && l.root.Write
}

// maxLinks bounds how many links a way may have, as the kernel does.
const maxLinks = 40

// way protects what programs will find when they follow a path: each folder on
// it keeps its place, each link on it is held, and what it ends at is read-only.
// Where it ends before its time, what comes into being there is moved aside.
func (l *layout) way(path string) {
	done, rest := "/", path
	for links := 0; ; {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			break
		}
		name, after, _ := strings.Cut(rest, "/")
		next := filepath.Join(done, name) // dots are right here: done holds no link
		info, err := l.lstat(next)
		if err != nil {
			if strings.Contains("/"+after+"/", "/../") {
				after = "" // where it would lead depends on what is made there
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

// hold keeps a link as it is: it is mounted over itself. Where the kernel does
// not do that, a link that was changed is put back.
func (l *layout) hold(path, to string) {
	if _, taken := l.mounts[path]; taken || !l.writable(path) {
		return
	}
	l.add(inside.Mount{Show: inside.ShowHeld, Source: path, Target: path})
	l.note(path, "→ "+to)
	l.watch(watched{Path: path, Link: to})
	l.pin(filepath.Dir(path))
}

// watch remembers a path to look at when the command has ended, and keeps the
// folders above it in their place.
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

// holdsRoot says whether a path is one of the folders that may be written to
// as a whole, or holds one.
func (l *layout) holdsRoot(path string) bool {
	for _, a := range l.watched.Anchors {
		if paths.Within(path, a.Path) {
			return true
		}
	}
	return path == "/"
}

// isProtected says whether a name is a protected one. Those that begin with a
// dot are, however they are spelled: some file systems take .GIT for .git, and
// ignore characters that cannot be seen.
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

// visible leaves out the characters that file systems ignore in names.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, name)
}
