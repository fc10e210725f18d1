package sandbox

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// A watch is what could not be protected while a command ran.
type watch struct {
	paths []watched
	// Below the top of a workspace everything of a protected name is watched:
	// root is the workspace, "" for none; census is what was there before, and
	// since is when.
	root   string
	census *census
	since  time.Time
}

// A watched path could not be protected because nothing was there to protect,
// or a link that can be replaced.
type watched struct {
	path string
	link string // where it led before; "" for what was not there
}

// quarantine renames what was made under watched names, after the command's
// last process is gone, so that nothing takes it for the user's own.
func (w watch) quarantine() []Quarantine {
	var found []Quarantine
	for _, p := range w.paths {
		if _, err := os.Lstat(p.path); err != nil {
			if p.link != "" && os.Symlink(p.link, p.path) == nil {
				found = append(found, Quarantine{Path: p.path, Err: "it was removed, and has been put back"})
			}
			continue
		}
		to, err := os.Readlink(p.path)
		if p.link != "" && err == nil && to == p.link {
			continue
		}
		found = append(found, p.move())
	}
	return append(found, w.below()...)
}

// below is quarantine for what lies below the top of the workspace. What was
// there before could not be written to, wherever it is now.
func (w watch) below() []Quarantine {
	if w.root == "" || !w.census.whole {
		return nil
	}
	known := map[inode]bool{}
	for _, id := range w.census.found {
		known[id] = true
	}
	var made []string
	for path, id := range tree("").recount(w.census, w.root, w.since) {
		if !known[id] {
			made = append(made, path)
		}
	}
	slices.Sort(made)
	var found []Quarantine
	for _, path := range made {
		found = append(found, watched{path: path}.move())
	}
	return found
}

func (w watched) move() Quarantine {
	q := Quarantine{Path: w.path}
	for n := 1; n < 1000; n++ {
		to := fmt.Sprintf("%s.pollux-quarantine-%d", w.path, n)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(w.path, to); err != nil {
			q.Err = err.Error()
			return q
		}
		q.Moved = to
		break
	}
	if w.link != "" {
		if err := os.Symlink(w.link, w.path); err != nil {
			q.Err = err.Error()
		}
	}
	return q
}
