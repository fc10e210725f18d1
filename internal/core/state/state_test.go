package state

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// SPEC C-3, C-4: one active file, always the newest, no two times alike even
// when focus moves faster than the clock.
func TestFocusTimes(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		start := time.Now()
		for _, path := range strings.Fields("/a /b /c /b /d") {
			s.Report("w", Report{Active: path, Cursor: at(3, 4)})
		}
		s.Open("w", "/never2")
		s.Open("w", "/never1")
		snap := l.last(t)
		check(t, snap)
		if got, want := names(snap), "/d /b /c /a /never1 /never2"; got != want {
			t.Errorf("files %q, want %q", got, want)
		}
		if !snap.file("/never1").Focused.IsZero() {
			t.Error("a file that was never focused has a time")
		}
		if d := snap.Files[0].Focused.Sub(start); d < 0 || d > 5*ms {
			t.Errorf("the active file's time is %v off the clock", d)
		}
		// A moving cursor is no new focus.
		s.Report("w", Report{Active: "/d", Cursor: at(5, 0)})
		if next := l.last(t); next.Files[0] != snap.Files[0] || *next.Cursor != *at(5, 0) {
			t.Errorf("got %+v with cursor %v", next.Files[0], next.Cursor)
		}
		// Coming back from a terminal is.
		s.Report("w", Report{})
		if next := l.last(t); next.Active != "" || next.Cursor != nil {
			t.Errorf("active %q, cursor %v in a terminal", next.Active, next.Cursor)
		}
		s.Report("w", Report{Active: "/d"})
		if next := l.last(t); !next.Files[0].Focused.After(snap.Files[0].Focused) {
			t.Error("the time of focus did not move")
		}
	})
}

func TestWindowsAreMerged(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		expect := func(files, active string) *Snapshot {
			t.Helper()
			snap := s.Snapshot()
			check(t, snap)
			if names(snap) != files || snap.Active != active {
				t.Errorf("files %q with %q active, want %q with %q", names(snap), snap.Active, files, active)
			}
			return snap
		}
		one := Report{Active: "/a", Cursor: at(1, 0), Open: []string{"/a", "/b"}}
		two := Report{Active: "/c", Cursor: at(2, 0), Open: []string{"/b", "/c"}, Dirty: []string{"/b"}}
		s.Report("1", one)
		s.Report("2", two)
		if snap := expect("/c /a /b", "/c"); !snap.file("/b").Dirty || snap.file("/a").Dirty || *snap.Cursor != *at(2, 0) {
			t.Errorf("got %+v", snap)
		}
		s.Report("1", one) // repeats itself: stays behind
		expect("/c /a /b", "/c")
		one.Front = true
		s.Report("1", one) // the user clicked into it
		expect("/a /c /b", "/a")
		two.Cursor = at(9, 9)
		s.Report("2", two) // the user moves there
		expect("/c /a /b", "/c")
		s.Report("3", Report{Open: []string{"/d"}}) // a new window that shows nothing of the user's
		expect("/c /a /b /d", "/c")
		s.Leave("2")
		if snap := expect("/a /b /d", "/a"); *snap.Cursor != *at(1, 0) || snap.file("/b").Dirty {
			t.Errorf("got %+v", snap)
		}
		s.Close("1", "/a")
		expect("/b /d", "")
		s.Leave("1")
		s.Leave("3")
		expect("", "")
	})
}

func TestReportWithoutLists(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		s.Report("w", Report{Active: "/a", Open: []string{"/b", ""}, Dirty: []string{"/b"}}) // forgot its own
		s.Report("w", Report{Active: "/c"})
		snap := l.last(t)
		check(t, snap)
		if got := names(snap); got != "/c /a /b" || !snap.file("/b").Dirty {
			t.Errorf("files %q, want those that were open too", got)
		}
		s.Report("w", Report{Active: "/c", Open: []string{}, Dirty: []string{}})
		if got := names(l.last(t)); got != "/c" {
			t.Errorf("files %q, want /c only", got)
		}
		s.Report("w", Report{Open: []string{}, Cursor: at(1, 1), Selections: []Selection{{Text: "x"}}})
		snap = l.last(t)
		check(t, snap)
		if len(snap.Files) != 0 {
			t.Errorf("files %q, want none", names(snap))
		}
	})
}

// A file that was closed everywhere starts afresh.
func TestReopenedFileHasNoOldFocus(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		s.Report("w", Report{Active: "/a"})
		s.Report("w", Report{Active: "/b", Open: []string{"/b"}})
		l.last(t)
		s.Open("w", "/a")
		if f := l.last(t).file("/a"); f.Path == "" || !f.Focused.IsZero() {
			t.Errorf("got %+v, want /a without a time", f)
		}
	})
}

func TestRename(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		p := filepath.FromSlash
		s.Report("2", Report{Active: p("/r/dir/x"), Open: []string{p("/r/dir/x"), p("/r/dirt")}})
		s.Report("1", Report{Active: p("/r/dir/x"), Cursor: at(1, 2), Open: []string{p("/r/dir/x"), p("/r/dir/y"), p("/r/dir")}, Dirty: []string{p("/r/dir/y")}})
		s.SetDiagnostics(p("/r/dir/x"), []Diagnostic{{Message: "m"}})
		before := l.last(t)
		s.Rename(p("/r/dir"), p("/r/new"))
		snap := l.last(t)
		check(t, snap)
		if got, want := names(snap), p("/r/new/x /r/dirt /r/new /r/new/y"); got != want {
			t.Errorf("files %q, want %q", got, want)
		}
		if snap.Active != p("/r/new/x") || *snap.Cursor != *at(1, 2) || !snap.file(p("/r/new/y")).Dirty ||
			snap.file(p("/r/new/x")).Focused != before.file(p("/r/dir/x")).Focused || len(snap.Diagnostics[p("/r/new/x")]) != 1 {
			t.Errorf("got %+v", snap)
		}
		if before.Active != p("/r/dir/x") || before.Diagnostics[p("/r/dir/x")] == nil {
			t.Error("a published snapshot changed")
		}
		// Onto a file that is open already: one file, with the newest focus.
		s.Rename(p("/r/new/x"), p("/r/dirt"))
		snap = l.last(t)
		check(t, snap)
		if snap.Active != p("/r/dirt") || len(snap.Files) != 3 {
			t.Errorf("got %+v", snap)
		}
		s.Report("1", Report{Active: p("/r/dirt"), Cursor: at(1, 2)}) // the editor says what it did
		if l.last(t) != snap {
			t.Error("published again for the editor's own report")
		}
	})
}

// SPEC C-5: more than any agent is told is not kept.
func TestSelectionsAreBounded(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		long := strings.Repeat("ab😀", 20_000)
		many := make([]Selection, 1000)
		for i := range many {
			many[i] = Selection{Start: Position{i, 0}, End: Position{i, 1}, Text: long}
		}
		s.Report("w", Report{Active: "/a", Selections: many})
		snap := l.last(t)
		if n := len(snap.Selections); n != maxSelections {
			t.Errorf("%d selections kept", n)
		}
		if n := text.UTF16Len(snap.Selections[0].Text); n != maxSelection {
			t.Errorf("%d units of text kept, want %d", n, maxSelection)
		}
		s.Report("w", Report{Active: "/a", Selections: many})
		if l.last(t); len(l.at) != 1 {
			t.Error("published again for the same selections")
		}
	})
}

// Callers may reuse what they passed; subscribers keep what they got.
func TestSnapshotsAreImmutable(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		roots, trust, cursor := []string{"/r"}, true, at(1, 1)
		selections := []Selection{{Text: "x"}}
		ds := []Diagnostic{{Message: "m"}}
		s.SetRoots(roots)
		s.SetTrust(&trust)
		s.SetDiagnostics("/a", ds)
		s.Report("w", Report{Active: "/a", Cursor: cursor, Selections: selections})
		snap := l.last(t)
		roots[0], trust, cursor.Line, selections[0].Text, ds[0].Message = "/x", false, 9, "y", "n"
		s.SetDiagnostics("/a", nil)
		s.SetDiagnostics("/b", ds)
		s.Open("w", "/b")
		s.SetTrust(nil)
		next := l.last(t)
		if snap.Roots[0] != "/r" || !*snap.Trusted || snap.Cursor.Line != 1 || snap.Selections[0].Text != "x" ||
			snap.Diagnostics["/a"][0].Message != "m" || len(snap.Diagnostics) != 1 || len(snap.Files) != 1 {
			t.Errorf("a published snapshot became %+v", snap)
		}
		if next.Trusted != nil || len(next.Diagnostics) != 1 || len(next.Files) != 2 || next.Roots[0] != "/r" {
			t.Errorf("got %+v", next)
		}
	})
}

func BenchmarkCursorEvent(b *testing.B) {
	s, r := benchStore(1000)
	defer s.Shut()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Cursor.Line = i
		s.Report("w", r)
	}
}

// The lists of a report cost in proportion to their length, nothing else does.
func BenchmarkCursorEventWithLists(b *testing.B) {
	s, r := benchStore(100)
	defer s.Shut()
	r.Open = strings.Fields(names(s.Snapshot()))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Cursor.Line = i
		s.Report("w", r)
	}
}

func BenchmarkPublishCursor(b *testing.B) {
	s, r := benchStore(1000)
	defer s.Shut()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Cursor.Line = i
		s.Report("w", r)
		s.Snapshot()
	}
}

func BenchmarkPublishFocus(b *testing.B) {
	s, r := benchStore(1000)
	defer s.Shut()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Active = [2]string{"/0", "/1"}[i%2]
		s.Report("w", r)
		s.Snapshot()
	}
}

// benchStore has that many files open and never publishes by itself.
func benchStore(files int) (*Store, Report) {
	s := New(&Options{Debounce: time.Hour, MaxDelay: time.Hour, Keep: each(func(string) bool { return true })})
	for i := range files {
		s.Open("w", "/"+strings.Repeat("x", i%7)+string(rune('0'+i%10))+strings.Repeat("y", i/10))
	}
	r := Report{Active: "/0", Cursor: at(0, 0)}
	s.Report("w", r)
	s.Snapshot()
	return s, r
}
