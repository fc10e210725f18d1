//go:build unix

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// pointing is a companion whose socket lies where its client does not look; the client finds a pointer in dir.
func pointing(t *testing.T, f *fake) (s *Server, dir string) {
	t.Helper()
	s = listen(t, []string{shortDir(t)}, f)
	dir = filepath.Join(t.TempDir(), "run")
	if err := s.point(dir); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// SPEC §11.1: a variable leads no process past the companion that knows its agent.
func TestPointer(t *testing.T) {
	_, dir := pointing(t, &fake{reviewed: newReviewed(), agent: os.Getpid()})
	if err := MayDecide(t.Context(), []string{filepath.Join(dir, "nothing"), dir}); err == nil || err.Error() != ErrFromAgent.Error() {
		t.Errorf("the agent's process: %v", err)
	}
	s, dir := pointing(t, &fake{reviewed: newReviewed()})
	dirs := []string{filepath.Join(dir, "nothing"), dir}
	if err := MayDecide(t.Context(), dirs); err != nil {
		t.Errorf("a person's: %v", err)
	}
	if err := MayDecide(t.Context(), []string{filepath.Dir(s.Path()), dir}); err != nil {
		t.Errorf("a person's, who finds the socket as well: %v", err)
	}
	s.Close()
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// fleeting is a companion that ends between two questions.
type fleeting struct {
	*fake

	asked atomic.Int32
	end   func()
}

func (f *fleeting) Agents(ctx context.Context) Agents {
	if f.asked.Add(1) == 2 {
		go f.end()
		<-ctx.Done()
	}
	return f.fake.Agents(ctx)
}

// SPEC §11.1: a companion that says who is connected, but not whose this process is, leaves that open: this process may see no parents.
func TestNotJudged(t *testing.T) {
	f := &fleeting{fake: &fake{reviewed: newReviewed()}}
	s := listen(t, []string{shortDir(t)}, f)
	f.end = s.Close
	if err := MayDecide(t.Context(), []string{filepath.Dir(s.Path())}); !errors.Is(err, ErrUnknownAgent) || f.asked.Load() != 2 {
		t.Errorf("%v, asked %d times", err, f.asked.Load())
	}
}

// A companion's start removes what killed ones have left, and no pointer of one that lives.
func TestPointersOfKilled(t *testing.T) {
	first, dir := pointing(t, &fake{reviewed: newReviewed()})
	there := names(t, dir)[0]
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, pointerSuffix)), []byte("/nowhere"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := listen(t, []string{shortDir(t)}, &fake{reviewed: newReviewed()})
	if err := second.point(dir); err != nil {
		t.Fatal(err)
	}
	if left := names(t, dir); len(left) != 2 || !slices.Contains(left, there) {
		t.Errorf("left are %q, of them %q of %q", left, there, first.Path())
	}
}

// Whoever cannot reach a companion that lives, does not know whose they are.
func TestPointerToHidden(t *testing.T) {
	s, dir := pointing(t, &fake{reviewed: newReviewed()})
	if err := os.Rename(s.Path(), s.Path()+".away"); err != nil {
		t.Fatal(err)
	}
	err := MayDecide(t.Context(), []string{dir})
	if !errors.Is(err, ErrUnknownAgent) || !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), fmt.Sprintf("process %d runs", os.Getpid())) {
		t.Errorf("%v", err)
	}
}

// A companion that was killed has left its pointer.
func TestPointerIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "7-ABC.at"), []byte("/nowhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MayDecide(t.Context(), []string{dir}); err != nil {
		t.Error(err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("it stays: %q", left)
	}
}

// A companion does not hide behind more sockets than are asked.
func TestManySockets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for n := range maxSockets + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(n)+socketSuffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := MayDecide(t.Context(), []string{dir}); !errors.Is(err, ErrSilent) {
		t.Errorf("%v", err)
	}
}

// Many companions that hang cost no more time than one.
func TestManyHang(t *testing.T) {
	var dir string
	for range 12 {
		s := listen(t, []string{shortDir(t)}, &fake{reviewed: newReviewed()})
		s.ln.Close() // its socket is gone
		ln, err := net.Listen("unix", s.Path())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		if dir == "" {
			dir = filepath.Join(t.TempDir(), "run")
		}
		if err := s.point(dir); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	err := MayDecide(t.Context(), []string{dir})
	if took := time.Since(begun); !errors.Is(err, ErrSilent) || took > 5*dialTimeout {
		t.Errorf("%v, after %v", err, took)
	}
}
