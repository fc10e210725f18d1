package state

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inTime runs f in virtual time with a store whose publications are recorded.
func inTime(t *testing.T, o *Options, f func(t *testing.T, s *Store, log *log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(o)
		l := &log{start: time.Now()}
		s.Subscribe(l.add)
		f(t, s, l)
		s.Shut()
	})
}

// A log is what a subscriber heard and when.
type log struct {
	start time.Time
	at    []time.Duration
	snaps []*Snapshot
}

func (l *log) add(s *Snapshot) {
	l.at = append(l.at, time.Since(l.start))
	l.snaps = append(l.snaps, s)
}

// times waits for what is at work now and says when there were publications.
func (l *log) times() []time.Duration {
	synctest.Wait()
	return l.at
}

// last waits until all is published and returns the newest snapshot.
func (l *log) last(t *testing.T) *Snapshot {
	t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	if len(l.snaps) == 0 {
		t.Fatal("nothing was published")
	}
	return l.snaps[len(l.snaps)-1]
}

func names(s *Snapshot) string {
	var list []string
	for _, f := range s.Files {
		list = append(list, f.Path)
	}
	return strings.Join(list, " ")
}

func (s *Snapshot) file(path string) File {
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Path == path })
	if i < 0 {
		return File{}
	}
	return s.Files[i]
}

func at(line, character int) *Position { return &Position{line, character} }

// check asserts what holds for every snapshot (SPEC C-3, C-4).
func check(t *testing.T, s *Snapshot) {
	t.Helper()
	for i := 1; i < len(s.Files); i++ {
		a, b := s.Files[i-1], s.Files[i]
		if b.Focused.After(a.Focused) || !b.Focused.IsZero() && a.Focused.UnixMilli() <= b.Focused.UnixMilli() {
			t.Errorf("%s at %v stands before %s at %v", a.Path, a.Focused, b.Path, b.Focused)
		}
	}
	if s.Active == "" {
		if s.Cursor != nil || s.Selections != nil {
			t.Errorf("cursor %v and selections %v without an active file", s.Cursor, s.Selections)
		}
	} else if len(s.Files) == 0 || s.Files[0].Path != s.Active || s.Files[0].Focused.IsZero() {
		t.Errorf("active %q is not the newest of %v", s.Active, s.Files)
	}
}

// each is a Keep that judges every path by itself.
func each(keep func(string) bool) func() func(string) bool {
	return func() func(string) bool { return keep }
}
