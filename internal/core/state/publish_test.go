package state

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

// SPEC C-2: 50 ms after the last change.
func TestDebounce(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		s.Report("w", Report{Active: "/a"})
		time.Sleep(30 * ms)
		s.Report("w", Report{Active: "/b"})
		time.Sleep(time.Second)
		s.Report("w", Report{Active: "/a"})
		time.Sleep(time.Second)
		if want := []time.Duration{80 * ms, 1030*ms + 50*ms}; !slices.Equal(l.times(), want) {
			t.Errorf("published at %v, want %v", l.at, want)
		}
	})
}

// SPEC C-2: a cursor that never rests still reports, about every 200 ms, and
// nothing that is published is older than 250 ms.
func TestStorm(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		const events, gap = 10_000, 200 * time.Microsecond
		for i := range events {
			s.Report("w", Report{Active: "/a", Cursor: at(i, 0)})
			time.Sleep(gap)
		}
		final := l.last(t)
		if n := len(l.at); n < 9 || n > 12 {
			t.Errorf("%d publications in 2 s, want about 10: %v", n, l.at)
		}
		for i := 1; i < len(l.at); i++ {
			if d := l.at[i] - l.at[i-1]; d > 250*ms {
				t.Errorf("%v without a publication", d)
			}
		}
		for i, snap := range l.snaps[:len(l.snaps)-1] {
			if age := l.at[i] - time.Duration(snap.Cursor.Line)*gap; age > ms {
				t.Errorf("the cursor of publication %d was %v old", i, age)
			}
		}
		if final.Cursor.Line != events-1 {
			t.Errorf("the last cursor is in line %d, want %d", final.Cursor.Line, events-1)
		}
	})
}

// A change that comes every 45 ms never leaves 50 ms of quiet.
func TestLongestDelay(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		for i := range 20 {
			s.Report("w", Report{Active: "/a", Cursor: at(i, 0)})
			time.Sleep(45 * ms)
		}
		l.last(t)
		if want := []time.Duration{200 * ms, 425 * ms, 650 * ms, 875 * ms}; !slices.Equal(l.times(), want) {
			t.Errorf("published at %v, want %v", l.at, want)
		}
	})
}

func TestOptions(t *testing.T) {
	inTime(t, &Options{Debounce: 10 * ms, MaxDelay: 15 * ms}, func(t *testing.T, s *Store, l *log) {
		s.Touch()
		s.SetRoots([]string{"/r"})
		time.Sleep(9 * ms)
		s.SetRoots([]string{"/s"})
		l.last(t)
		if want := []time.Duration{15 * ms}; !slices.Equal(l.times(), want) {
			t.Errorf("published at %v, want %v", l.at, want)
		}
	})
}

// SPEC C-2: no notification when nothing changed.
func TestNothingWhenEqual(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		s.Touch()
		s.SetRoots(nil)
		time.Sleep(time.Second)
		if len(l.times()) != 0 {
			t.Fatalf("published %+v for an empty store", l.snaps[0])
		}
		r := Report{Active: "/a", Cursor: at(1, 2), Selections: []Selection{{End: Position{0, 1}, Text: "x"}}, Open: []string{"/a", "/b"}, Dirty: []string{"/a"}, Front: true}
		s.Report("w", r)
		time.Sleep(time.Second)
		s.Report("w", r)
		s.Touch()
		s.Close("w", "/unknown")
		s.Close("nobody", "/a")
		s.Leave("nobody")
		s.Open("w", "/b")
		s.Rename("/x", "/y")
		s.SetDiagnostics("/a", nil)
		time.Sleep(time.Second)
		r.Cursor = at(2, 2)
		s.Report("w", r)
		r.Cursor = at(1, 2)
		s.Report("w", r) // there and back within the debounce
		time.Sleep(time.Second)
		if len(l.times()) != 1 {
			t.Errorf("%d publications, want 1", len(l.at))
		}
	})
}

// SPEC C-6, C-8: what Keep refuses is nowhere, and a file that comes or goes
// is told by Touch.
func TestKeep(t *testing.T) {
	refused := map[string]bool{"/secret": true}
	asked := map[string]int{}
	keep := func(path string) bool { asked[path]++; return !refused[path] }
	inTime(t, &Options{Keep: each(keep)}, func(t *testing.T, s *Store, l *log) {
		s.Report("w", Report{Active: "/a", Open: []string{"/a", "/b", "/secret"}})
		s.Report("w", Report{Active: "/secret", Cursor: at(1, 1), Selections: []Selection{{Text: "pass"}}})
		s.SetDiagnostics("/secret", []Diagnostic{{Message: "pass"}})
		s.SetDiagnostics("/a", []Diagnostic{{Message: "ok"}})
		snap := l.last(t)
		check(t, snap)
		if names(snap) != "/a /b" || snap.Active != "" || len(snap.Diagnostics) != 1 {
			t.Errorf("got %+v", snap)
		}
		if asked["/a"] != 1 || asked["/secret"] != 1 {
			t.Errorf("Keep was asked %v, want once each", asked)
		}
		refused["/secret"], refused["/b"] = false, true
		s.Touch()
		snap = l.last(t)
		check(t, snap)
		if names(snap) != "/secret /a" || snap.Active != "/secret" || snap.Cursor == nil || len(snap.Diagnostics) != 2 {
			t.Errorf("got %+v", snap)
		}
	})
}

// SPEC C-8: while sharing is paused agents are told nothing but the roots; files go on being followed.
func TestPause(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		s.SetRoots([]string{"/r"})
		s.Report("w", Report{Active: "/r/a", Cursor: at(1, 2), Selections: []Selection{{Text: "x"}}, Open: []string{"/r/a"}})
		s.SetDiagnostics("/r/a", []Diagnostic{{Message: "x"}})
		if snap := l.last(t); names(snap) != "/r/a" {
			t.Fatalf("%+v", snap)
		}
		var open, told []string
		s.FollowOpen(func(paths []string) { open = paths })
		s.FollowPause(func(paused bool) { told = append(told, fmt.Sprint(paused)) })
		bare := &Snapshot{Roots: []string{"/r"}}
		s.Pause(true)
		s.Pause(true)
		if snap := s.Snapshot(); !equal(snap, bare) || !s.Paused() {
			t.Errorf("at once: %+v", snap)
		}
		if snap := l.last(t); !equal(snap, bare) {
			t.Errorf("told: %+v", snap)
		}
		before := len(l.times())
		s.Report("w", Report{Active: "/r/b", Open: []string{"/r/a", "/r/b"}})
		time.Sleep(time.Second)
		if len(l.times()) != before || !slices.Equal(open, []string{"/r/a", "/r/b"}) {
			t.Errorf("told of something, or not followed: %v", open)
		}
		s.Pause(false)
		if snap := l.last(t); names(snap) != "/r/b /r/a" && names(snap) != "/r/a /r/b" || snap.Active != "/r/b" || len(snap.Diagnostics) != 1 {
			t.Errorf("resumed: %+v", snap)
		}
		if !slices.Equal(told, []string{"true", "false"}) {
			t.Errorf("%v", told)
		}
	})
}

// A slow Keep holds up neither events nor Snapshot's caller's store, and
// publications do not overlap.
func TestSlowKeep(t *testing.T) {
	var running atomic.Int32
	keep := func(string) bool {
		if running.Add(1) > 1 {
			panic("two publications at a time")
		}
		time.Sleep(300 * ms)
		running.Add(-1)
		return true
	}
	inTime(t, &Options{Keep: each(keep)}, func(t *testing.T, s *Store, l *log) {
		for i := range 30 {
			before := time.Now()
			s.Report("w", Report{Active: "/a", Cursor: at(i, 0)})
			if d := time.Since(before); d != 0 {
				t.Fatalf("a report took %v", d)
			}
			time.Sleep(20 * ms)
		}
		if got := l.last(t).Cursor.Line; got != 29 {
			t.Errorf("the last cursor is in line %d, want 29", got)
		}
	})
}

func TestSnapshotDoesNotWait(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		s.Report("w", Report{Active: "/a"})
		if got := s.Snapshot().Active; got != "/a" {
			t.Errorf("active is %q, want /a", got)
		}
		if l.last(t); len(l.times()) != 1 {
			t.Error("Snapshot swallowed the publication")
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		defer s.Shut()
		calls, ended := 0, false
		cancel := s.Subscribe(func(*Snapshot) { calls++; time.Sleep(time.Second); ended = true })
		s.Report("w", Report{Active: "/a"})
		time.Sleep(60 * ms) // in the first call now
		s.Report("w", Report{Active: "/b"})
		cancel()
		if calls != 1 || !ended {
			t.Errorf("calls %d, ended %v when cancel returned", calls, ended)
		}
		time.Sleep(time.Second)
		s.Report("w", Report{Active: "/c"})
		time.Sleep(time.Second)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls, want one", calls)
		}
	})
}

func TestShut(t *testing.T) {
	inTime(t, nil, func(t *testing.T, s *Store, l *log) {
		s.Report("w", Report{Active: "/a"})
		s.Shut()
		s.Report("w", Report{Active: "/b"})
		time.Sleep(time.Second)
		if len(l.times()) != 0 {
			t.Error("published after Shut")
		}
		if s.Snapshot().Active != "/b" {
			t.Error("Snapshot does not see what came after Shut")
		}
		s.Shut()
	})
}

// Everything at once, for the race detector; every snapshot obeys the rules.
func TestConcurrentUse(t *testing.T) {
	s := New(&Options{Debounce: ms, MaxDelay: 2 * ms, Keep: each(func(p string) bool { return p != "/3" })})
	s.Subscribe(func(snap *Snapshot) { check(t, snap) })
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			window := fmt.Sprint(i % 3)
			for j := range 500 {
				path := fmt.Sprintf("/%d", j%7)
				switch j % 11 {
				case 0:
					s.Leave(window)
				case 1:
					s.Close(window, path)
				case 2:
					s.Rename(path, path+"x")
				case 3:
					s.SetDiagnostics(path, []Diagnostic{{Message: path}})
				case 4:
					s.Subscribe(func(snap *Snapshot) { _ = names(snap) })()
				case 5:
					check(t, s.Snapshot())
				case 6:
					s.Open(window, path)
				default:
					s.Report(window, Report{Active: path, Cursor: at(j, 0), Open: []string{path, "/1"}, Dirty: []string{path}})
				}
			}
		})
	}
	wg.Wait()
	s.Shut()
}

// Waiting is about what subscribers have not heard yet, and nothing else.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		var heard atomic.Bool
		defer s.Subscribe(func(*Snapshot) { heard.Store(true) })()
		if s.Waiting() {
			t.Error("nothing has changed")
		}
		s.Open("w", "/a")
		for range 3 {
			if !s.Waiting() || heard.Load() {
				t.Fatal("a change has been told before its time, or forgotten")
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if s.Waiting() || !heard.Load() {
			t.Errorf("waiting %v, heard %v", s.Waiting(), heard.Load())
		}
		s.Open("w", "/b")
		s.Shut()
		if s.Waiting() {
			t.Error("it is never told any more, and waited for")
		}
	})
}
