package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// SPEC C-8: nothing of a secret file's texts stays on the disk when its diff is not needed any more, whatever else is open. Until then a
// companion that reads the folder finds all of them.
func TestNoSecretStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	secret := func(path string) bool { return path == "/.env" }
	var s *setup
	life := func() {
		j := Open(dir, secret, func(err error) { t.Error(err) })
		s = &setup{dir: dir, j: j, r: review.New(review.Options{View: view{}})}
		t.Cleanup(j.Follow(s.r))
	}
	life()
	o := s.session(t, "one")
	o.open(s.r, review.Proposal{Key: "/a", Path: "/a", New: "open all the time"})
	propose := func(key string) *review.Diff {
		d := o.open(s.r, review.Proposal{Key: key, Path: "/.env", Old: "TOKEN=hunter1", New: "TOKEN=hunter2"})
		if _, err := s.r.Edit(d.ID(), review.Edit{Text: "TOKEN=hunter3"}); err != nil {
			t.Fatal(err)
		}
		same(t, s.j, dir)
		return d
	}
	accepted, rejected := propose("/1"), propose("/2")
	propose("/3")
	propose("/4")
	if err := errors.Join(s.r.Accept(accepted.ID(), accepted.Now().Seen, nil), s.r.Reject(rejected.ID())); err != nil {
		t.Fatal(err)
	}
	s.j.Heard("one", 1, 2)
	s.j.Dropped("one", "/3")
	if n := len(secrets(t, dir)); n == 0 {
		t.Error("the texts of the one that is open are nowhere")
	}
	s.j.Close()
	life()
	if err := s.j.rewrite(); err != nil {
		t.Fatal(err)
	}
	same(t, s.j, dir)
	s.j.Ended("one", true)
	if found := secrets(t, dir); len(found) > 0 {
		t.Errorf("left: %q", found)
	}
}

// secrets returns the files of a folder that have a text of a secret file.
func secrets(t *testing.T, dir string) (found []string) {
	t.Helper()
	for _, name := range list(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("hunter")) {
			found = append(found, name)
		}
	}
	return found
}
