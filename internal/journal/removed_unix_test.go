//go:build unix

package journal

import (
	"errors"
	"os"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// A file that somebody removes is written anew, with everything in it, and what cannot be read is said.
func TestRemovedFile(t *testing.T) {
	s := newSetup(t)
	s.j.trouble = func(error) {}
	o := s.session(t, "one")
	o.open(s.r, review.Proposal{Key: "/a", Path: "/a", New: "a"})
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.j.looked = s.j.looked.Add(-lookEvery)
	o.open(s.r, review.Proposal{Key: "/b", Path: "/b", New: "b"})
	if s.j.Trouble() == nil {
		t.Error("nobody is told")
	}
	s.j.again()
	if s.j.Trouble() != nil {
		t.Error(s.j.Trouble())
	}
	same(t, s.j, s.dir)
	if err := errors.Join(os.Remove(s.j.path()), os.Mkdir(s.j.path(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if j := Open(s.dir, func(error) {}); j.Lost() == nil {
		t.Error("a journal that cannot be read, and nobody is told")
	}
}
