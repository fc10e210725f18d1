//go:build unix

package journal

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	if j := Open(s.dir, nil, func(error) {}); j.Lost() == nil {
		t.Error("a journal that cannot be read, and nobody is told")
	}
}

// SPEC L-3: something else in place of a text is damage. It is not waited for or followed, and the other texts come back.
func TestNoText(t *testing.T) {
	long := strings.Repeat("x", inlineText+1)
	for name, put := range map[string]func(path string) error{
		"FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link": func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte(long), 0o600), os.Symlink(path+"2", path))
		},
		"link to itself": func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"socket": func(path string) error {
			t.Chdir(filepath.Dir(path)) // a socket's name has at most about 100 bytes
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Base(path), Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	} {
		s := newSetup(t)
		o := s.session(t, "one")
		a := o.open(s.r, review.Proposal{Key: "/a", Path: "/a", New: long})
		s.j.Close()
		files, _ := filepath.Glob(filepath.Join(s.dir, "*"+textSuffix))
		if len(files) != 1 {
			t.Fatalf("%v", files)
		}
		if err := errors.Join(os.Remove(files[0]), put(files[0])); err != nil {
			t.Fatal(err)
		}
		j := open(t, s.dir)
		o.j = j
		b := o.open(s.r, review.Proposal{Key: "/b", Path: "/b", New: long + "b"})
		if _, err := j.Texts(a.ID()); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), files[0]) {
			t.Errorf("%s: %v", name, err)
		}
		if texts, err := j.Texts(b.ID()); err != nil || texts.New != long+"b" {
			t.Errorf("beside a %s: %v", name, err)
		}
		j.Close()
	}
}
