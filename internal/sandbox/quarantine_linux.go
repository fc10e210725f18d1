package sandbox

import (
	"fmt"
	"os"
)

// A watched path could not be protected while the command ran, because
// nothing was there to protect, or a link that can be replaced.
type watched struct {
	path string
	link string // where it led before; "" for what was not there
}

// quarantine renames what was made under watched names, after the command's
// last process is gone, so that nothing takes it for the user's own.
func quarantine(all []watched) []Quarantine {
	var found []Quarantine
	for _, w := range all {
		if _, err := os.Lstat(w.path); err != nil {
			if w.link != "" && os.Symlink(w.link, w.path) == nil {
				found = append(found, Quarantine{Path: w.path, Err: "it was removed, and has been put back"})
			}
			continue
		}
		to, err := os.Readlink(w.path)
		if w.link != "" && err == nil && to == w.link {
			continue
		}
		found = append(found, w.move())
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
