package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/paths"
)

// A watch lists what could not be made read-only during a run because it did not exist yet. It is enough to check it
// after the run, even from another process. Only the survey is not stored; without it the whole workspace is read
// again.
type watch struct {
	Anchors []anchor  `json:"anchors"`
	Paths   []watched `json:"paths"`
	// Root is the workspace in which every protected name is searched; "" for no search. Known are the protected
	// names that were there before the run.
	Root   string `json:"root,omitempty"`
	Known  []find `json:"known,omitempty"`
	survey *survey
}

// An anchor is a folder that a command may write to as a whole. The command cannot move or replace the folder itself,
// and pollux renames nothing outside it.
type anchor struct {
	Path string `json:"path"`
	identity
}

// A watched path did not exist before the run, or was a link.
type watched struct {
	Path string `json:"path"`           // none of its folders is a link
	Link string `json:"link,omitempty"` // its target, or "" for a path that did not exist
}

func (w *watch) empty() bool { return len(w.Paths) == 0 && w.Root == "" }

// anchor adds a folder that the command may write to as a whole.
func (l *layout) anchor(path string) {
	fd, err := openFolder(string(l.tree) + path)
	if err != nil {
		return // the mount will fail too
	}
	defer unix.Close(fd)
	if st, err := statAt(fd, ""); err == nil {
		l.watched.Anchors = append(l.watched.Anchors, anchor{path, st.identity})
	}
}

// maxQuarantined bounds how many names of one run are reported one by one.
const maxQuarantined = 100

// A sweep looks for what a command made under protected names, and renames it in place, so that no program takes it
// for the user's own. It runs after the command's last process is gone, so the command cannot race it.
type sweep struct {
	watch
	until int64 // newer files are not the command's; nanoseconds, 0 for no bound
	known map[identity]find
	found []Quarantine
	more  int // how many are missing in found
}

// quarantine sweeps after a run.
func (w *watch) quarantine(until int64) []Quarantine {
	s := &sweep{watch: *w, until: until, known: map[identity]find{}}
	for _, f := range w.Known {
		s.known[f.identity] = f
	}
	for _, p := range w.Paths {
		s.path(p)
	}
	if w.Root != "" {
		s.tree()
	}
	slices.SortStableFunc(s.found, func(a, b Quarantine) int { return strings.Compare(a.Path, b.Path) })
	if s.more > 0 {
		s.found = append(s.found, Quarantine{Path: w.Root, Err: fmt.Sprintf("%d more of these names were found in it, and treated alike", s.more)})
	}
	return s.found
}

func (s *sweep) report(q Quarantine) {
	if len(s.found) == maxQuarantined {
		s.more++
		return
	}
	s.found = append(s.found, q)
}

// open opens the anchor of a path. It fails if another folder lies at the anchor's path now, so nothing outside is
// renamed.
func (s *sweep) open(path string) (fd int, a anchor, err error) {
	for _, b := range s.Anchors {
		if paths.Within(b.Path, path) && len(b.Path) > len(a.Path) {
			a = b
		}
	}
	if a.Path == "" {
		return -1, a, errors.New("it lies in no folder that the command could write to")
	}
	if fd, err = openFolder(a.Path); err != nil {
		return -1, a, fmt.Errorf("the folder %q is gone: %w", a.Path, err)
	}
	if st, err := statAt(fd, ""); err != nil || st.identity != a.identity {
		unix.Close(fd)
		return -1, a, fmt.Errorf("the folder %q is another one now", a.Path)
	}
	return fd, a, nil
}

// path checks one watched path.
func (s *sweep) path(p watched) {
	dir, a, err := s.open(p.Path)
	if err != nil {
		s.report(Quarantine{Path: p.Path, Err: "it could not be looked at: " + err.Error()})
		return
	}
	defer func() { unix.Close(dir) }()
	rel, _ := filepath.Rel(a.Path, p.Path) // cannot fail: open found that a holds the path
	names := strings.Split(rel, "/")
	for i, name := range names {
		st, err := s.look(dir, name)
		last := i == len(names)-1
		switch {
		case errors.Is(err, unix.ENOENT):
			if p.Link != "" {
				s.putBack(dir, p, last)
			}
			return
		case err != nil:
			s.report(Quarantine{Path: p.Path, Err: "it could not be looked at: " + err.Error()})
			return
		case last:
			s.replace(dir, name, st, p)
			return
		case st.isLink(): // before the run no folder of the path was a link
			s.move(dir, name, filepath.Join(a.Path, filepath.Join(names[:i+1]...)))
			return
		case !st.isDir():
			return
		}
		next, err := openIn(dir, name)
		if err != nil {
			s.report(Quarantine{Path: p.Path, Err: "it could not be looked at: " + err.Error()})
			return
		}
		unix.Close(dir)
		dir = next
	}
}

// look is statAt, and first repairs a mode of dir that forbids it.
func (s *sweep) look(dir int, name string) (status, error) {
	st, err := statAt(dir, name)
	if !errors.Is(err, unix.EACCES) {
		return st, err
	}
	own, err := statAt(dir, "")
	if err == nil {
		err = mendMode(dir, own, nil)
	}
	if err != nil {
		return st, err
	}
	return statAt(dir, name)
}

// replace moves aside what is at a watched path now, unless it is unchanged.
func (s *sweep) replace(dir int, name string, st status, p watched) {
	if p.Link != "" && st.isLink() {
		if to, err := readlinkAt(dir, name); err == nil && to == p.Link {
			return
		}
	}
	// It was made after the last moment of a killed run, so it is not the command's.
	if s.later(st) {
		return
	}
	q := s.rename(dir, name, p.Path)
	if p.Link != "" && q.Err == "" {
		if err := unix.Symlinkat(p.Link, dir, name); err != nil {
			q.Err = "the link that was there could not be put back: " + err.Error()
		}
	}
	s.report(q)
}

func (s *sweep) putBack(dir int, p watched, last bool) {
	q := Quarantine{Path: p.Path, Err: "it was removed, and has been put back"}
	if !last {
		q.Err = "it was removed with its folder"
	} else if err := unix.Symlinkat(p.Link, dir, filepath.Base(p.Path)); err != nil {
		q.Err = "it was removed, and could not be put back: " + err.Error()
	}
	s.report(q)
}

// later says whether a file was made after the command's last moment.
func (s *sweep) later(st status) bool { return s.until != 0 && st.Born > s.until }

// tree searches the whole workspace.
func (s *sweep) tree() {
	fd, _, err := s.open(s.Root)
	if err != nil {
		s.report(Quarantine{Path: s.Root, Err: "it could not be searched: " + err.Error()})
		return
	}
	defer unix.Close(fd)
	w := &walk{mend: true, found: s.seen, lost: func(w *walk, name string, st status, err error) {
		if st.Ino == 0 || st.mayEnter() {
			s.report(Quarantine{Path: filepath.Join(s.Root, w.path(name)), Err: "it could not be searched, and may hold names through which others run commands as you: " + err.Error()})
		}
	}}
	var before *folder
	if s.survey != nil {
		before, w.times, w.since = s.survey.top, s.survey.times, s.survey.began-int64(clockSlack)
	}
	w.run(fd, before)
}

// seen handles one protected name that a walk found.
func (s *sweep) seen(w *walk, dir int, name string) (whole bool) {
	of := name
	if name == headName {
		of = ""
	}
	st, err := statAt(dir, of)
	if err != nil {
		return false
	}
	if f, ok := s.known[st.identity]; ok {
		to := ""
		if st.isLink() {
			to, _ = readlinkAt(dir, name) // "" never equals a link's target
		}
		if to == f.Link {
			return true
		}
	}
	if name == headName {
		if st, err = statAt(dir, name); err != nil {
			return false
		}
	}
	if !s.later(st) {
		s.move(dir, name, filepath.Join(s.Root, w.path(name)))
	}
	return false
}

func (s *sweep) move(dir int, name, path string) { s.report(s.rename(dir, name, path)) }

// rename gives a name in an open folder a new name that no program looks for.
func (s *sweep) rename(dir int, name, path string) Quarantine {
	q := Quarantine{Path: path}
	st, err := statAt(dir, "")
	if err != nil {
		q.Err = err.Error()
		return q
	}
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.pollux-quarantine-%d", name, n)
		if n > 9 { // the command took those names beforehand
			to = name + ".pollux-quarantine-" + rand.Text()
		}
		err = renameIn(dir, name, to)
		if errors.Is(err, unix.EACCES) && chmod(dir, st.mode|0o700) == nil {
			err = renameIn(dir, name, to)
			defer chmod(dir, st.mode) //nolint:errcheck // it is ours: the first one worked
		}
		if errors.Is(err, unix.EEXIST) && n < 20 {
			continue
		}
		if err != nil {
			q.Err = "it could not be moved aside: " + err.Error()
			return q
		}
		q.Moved = filepath.Join(filepath.Dir(path), to)
		return q
	}
}

// renameIn renames and never replaces a file.
func renameIn(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// This file system has no RENAME_NOREPLACE. Check first: nobody else knows the new name.
	if _, err := statAt(dir, to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(dir, from, dir, to)
}
