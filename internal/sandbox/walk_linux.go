package sandbox

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// packages is a folder of other people's code that the user runs anyway, so a command that can write there needs no
// hook. Packages may contain any protected name, so a walk skips it.
const packages = "node_modules"

// clockSlack is how coarse a file system's clock may be. A folder that changed this shortly before a survey could
// change again with the same time.
const clockSlack = 2 * time.Second

// maxOpen bounds how many folders a walk holds open, at any depth.
const maxOpen = 64

// A folder is what a walk saw of one folder of a workspace.
type folder struct {
	name    string
	id      identity
	mode    uint32
	changed int64
	sub     []*folder
}

// A walk goes through a workspace depth first, by descriptors, and follows no link: a folder that the command swaps
// for a link cannot lead it astray. With the result of an earlier walk it reads only folders that have changed since.
// It trusts the kernel's change time, which only somebody who sets the clock can forge.
type walk struct {
	mend  bool            // make folders searchable if their mode forbids it
	since int64           // read folders again that changed after this; nanoseconds
	times map[uint64]bool // device → whether its file system keeps change times, as far as known
	// found is told each entry that could run commands later: its folder and name. For the HEAD of a git repository
	// it returns whether the repository is protected as a whole and need not be searched.
	found func(w *walk, dir int, name string) (whole bool)
	// lost is told each folder that could not be searched: the one called name in the current folder, or the current
	// folder itself for "".
	lost func(w *walk, name string, st status, err error)

	levels []level
	buf    []byte
}

// A level is one folder on the way from the root to the current folder.
type level struct {
	fd   int // -1: closed to save descriptors
	node *folder
	rest []pending
}

// A pending folder has not been entered yet.
type pending struct {
	name   string
	before *folder // what an earlier walk saw there, nil for nothing
}

// run walks through root and everything below it, and returns what it saw.
func (w *walk) run(root int, before *folder) *folder {
	w.buf = make([]byte, 64*kib)
	if w.times == nil {
		w.times = map[uint64]bool{}
	}
	fd, err := unix.Openat(root, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		w.lost(w, "", status{}, err)
		return &folder{}
	}
	st, err := statAt(fd, "")
	if err != nil {
		w.lost(w, "", status{}, err)
	}
	top := &folder{id: st.identity, mode: st.mode, changed: st.changed}
	w.enter(fd, st, top, before)
	for len(w.levels) > 0 {
		here := &w.levels[len(w.levels)-1]
		if len(here.rest) == 0 {
			w.leave()
			continue
		}
		next := here.rest[len(here.rest)-1]
		here.rest = here.rest[:len(here.rest)-1]
		w.step(here, next)
	}
	return top
}

// step enters a subfolder of the current folder.
func (w *walk) step(here *level, next pending) {
	st, err := statAt(here.fd, next.name)
	if errors.Is(err, unix.ENOENT) || err == nil && !st.isDir() {
		return
	}
	node := &folder{name: next.name, id: st.identity, mode: st.mode, changed: st.changed}
	if err == nil && w.unchanged(next.before, st) && len(next.before.sub) == 0 {
		here.node.sub = append(here.node.sub, node)
		return
	}
	fd := -1
	if err == nil {
		if fd, err = openIn(here.fd, next.name); err == nil {
			st, err = statAt(fd, "")
		}
	}
	if err != nil {
		w.lost(w, next.name, st, err)
		if fd >= 0 {
			unix.Close(fd)
		}
		return
	}
	here.node.sub = append(here.node.sub, node)
	node.id = st.identity
	w.enter(fd, st, node, next.before)
}

// unchanged says whether a folder surely holds the same names as before.
func (w *walk) unchanged(before *folder, st status) bool {
	return before != nil && before.id == st.identity && before.changed == st.changed && st.changed < w.since && w.times[st.Dev]
}

// enter goes into an open folder and reads it, unless it is unchanged.
func (w *walk) enter(fd int, st status, node, before *folder) {
	w.levels = append(w.levels, level{fd: fd, node: node})
	if n := len(w.levels) - maxOpen; n > 0 && w.levels[n-1].fd >= 0 {
		unix.Close(w.levels[n-1].fd)
		w.levels[n-1].fd = -1
	}
	if _, known := w.times[st.Dev]; !known {
		w.times[st.Dev] = keepsTimes(fd)
	}
	here := &w.levels[len(w.levels)-1]
	if w.unchanged(before, st) {
		for _, sub := range before.sub {
			here.rest = append(here.rest, pending{sub.name, sub})
		}
		return
	}
	names := map[string]*folder{}
	if before != nil && before.id == st.identity {
		for _, sub := range before.sub {
			names[sub.name] = sub
		}
	} else {
		before = nil
	}
	rest, err := w.read(fd, st, before)
	if err != nil {
		w.lost(w, "", st, err)
	}
	for _, name := range rest {
		here.rest = append(here.rest, pending{name, names[name]})
	}
}

// read lists a folder, reports what it found, and returns the names of the subfolders to search.
func (w *walk) read(at int, st status, before *folder) (rest []string, err error) {
	fd, err := listable(at, st, w.mend, before)
	if err != nil {
		w.probe(at)
		return nil, err
	}
	defer unix.Close(fd)
	var shape shape
	var found []string
	err = listFolder(fd, w.buf, func(e direntry) {
		shape.see(e.name)
		switch {
		case isProtected(e.name):
			found = append(found, e.name)
		case e.dir && e.name != packages:
			rest = append(rest, e.name)
		}
	})
	for _, name := range found {
		w.found(w, at, name)
	}
	if shape.repository() && w.found(w, at, headName) {
		rest = nil
	}
	return rest, err
}

// probe looks for protected names in a folder that cannot be listed.
func (w *walk) probe(at int) {
	for _, name := range protectedNames() {
		if _, err := statAt(at, name); err == nil {
			w.found(w, at, name)
		}
	}
}

// leave returns to the parent folder. If that was closed to save descriptors, it is opened again through "..", and
// must still be the same folder: the command could have moved the child.
func (w *walk) leave() {
	last := w.levels[len(w.levels)-1]
	w.levels = w.levels[:len(w.levels)-1]
	defer unix.Close(last.fd)
	if len(w.levels) == 0 {
		return
	}
	here := &w.levels[len(w.levels)-1]
	if here.fd >= 0 {
		return
	}
	fd, err := unix.Openat(last.fd, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		var st status
		if st, err = statAt(fd, ""); err == nil && st.identity != here.node.id {
			err = errors.New("it was moved while it was searched")
		}
	}
	if err != nil {
		w.lost(w, "", status{identity: here.node.id}, err)
		here.rest = nil
	}
	here.fd = fd
}

// path returns the current folder's path below the root, with name appended unless it is "".
func (w *walk) path(name string) string {
	var names []string
	for _, l := range w.levels {
		if l.node.name != "" {
			names = append(names, l.node.name)
		}
	}
	if name != "" {
		names = append(names, name)
	}
	return strings.Join(names, "/")
}

// keepsTimes says whether a file system updates a folder's change time on each change. Linux's own do; network file
// systems and those of other systems may not.
func keepsTimes(fd int) bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return false
	}
	switch uint64(fs.Type) & 0xffffffff { // its size differs between architectures
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1, 0xca451a4e: // the last are ZFS and bcachefs
		return true
	}
	return false
}

// headName is the file that marks a git repository.
const headName = "HEAD"

// A shape collects the names that make git accept a folder as a repository, whatever the folder is called (see
// setup.c, is_git_directory).
type shape struct{ head, objects, refs, common bool }

func (s *shape) see(name string) {
	switch name {
	case headName:
		s.head = true
	case "objects":
		s.objects = true
	case "refs":
		s.refs = true
	case "commondir":
		s.common = true
	}
}

func (s *shape) repository() bool { return s.head && (s.objects && s.refs || s.common) }
