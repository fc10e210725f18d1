package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain lets the test binary be another process that writes.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_WRITER"); dir != "" {
		l := Open(dir)
		l.max = 8 << 10
		for i := range perWriter {
			if err := l.Append(Entry{Event: Ended, Extension: "x", Run: os.Args[1] + "-" + strconv.Itoa(i)}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// How much the processes of a test write: less than all files of the log hold,
// so that everything must be found again.
const (
	writers   = 4
	perWriter = 50
)

// TestWriters: processes and goroutines that write at once, over rotations,
// lose nothing and mix nothing (SPEC S-3).
func TestWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var wait sync.WaitGroup
	for n := range writers {
		wait.Go(func() {
			cmd := exec.Command(os.Args[0], "w"+strconv.Itoa(n))
			cmd.Env = append(os.Environ(), "AUDIT_WRITER="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	wait.Wait()
	entries, err := Open(dir).Read(Query{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if seen[e.Run] {
			t.Errorf("%s twice", e.Run)
		}
		seen[e.Run] = true
	}
	if len(seen) != writers*perWriter {
		t.Errorf("%d of %d entries", len(seen), writers*perWriter)
	}
	old, _ := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if len(old) == 0 {
		t.Error("nothing was set aside, so that nothing was proven")
	}
	for _, path := range append(old, Open(dir).Path()) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(path, info.Mode(), err)
		}
	}
}

// TestBounded: the files that are set aside are counted.
func TestBounded(t *testing.T) {
	l := Open(t.TempDir())
	l.max = 1000
	for i := range 200 {
		if err := l.Append(Entry{Event: Ended, Extension: "x", Milliseconds: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(l.dir, "*.jsonl"))
	if len(files) != maxOld+1 {
		t.Errorf("%q", files)
	}
	entries, err := l.Read(Query{})
	if err != nil || len(entries) == 0 || entries[len(entries)-1].Milliseconds != 199 {
		t.Fatal(len(entries), err)
	}
	for i := 1; i < len(entries); i++ {
		if entries[i].Milliseconds != entries[i-1].Milliseconds+1 {
			t.Errorf("%d follows %d", entries[i].Milliseconds, entries[i-1].Milliseconds)
		}
	}
}

// TestQuery: by extension and by age.
func TestQuery(t *testing.T) {
	l := Open(t.TempDir())
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for i, name := range []string{"a", "b", "a"} {
		l.now = func() time.Time { return now.Add(time.Duration(i) * time.Hour) }
		if err := l.Append(Entry{Event: Ended, Extension: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		q    Query
		want int
	}{{Query{}, 3}, {Query{Extension: "A"}, 2}, {Query{Since: now.Add(time.Hour)}, 2}, {Query{Extension: "a", Since: now.Add(time.Minute)}, 1}, {Query{Extension: "c"}, 0}} {
		if got, err := l.Read(test.q); err != nil || len(got) != test.want {
			t.Errorf("%+v: %d, %v; want %d", test.q, len(got), err, test.want)
		}
	}
	if got, err := Open(filepath.Join(t.TempDir(), "none")).Read(Query{}); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

// TestTornLine: what a full disk cut short costs one entry, and no other.
func TestTornLine(t *testing.T) {
	l := Open(t.TempDir())
	add := func() {
		t.Helper()
		if err := l.Append(Entry{Event: Ended, Extension: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	add()
	f, err := os.OpenFile(l.Path(), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(`{"time":"2026-`)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	add()
	add()
	if got, err := l.Read(Query{}); err != nil || len(got) != 3 {
		t.Error(len(got), err)
	}
	info, err := os.Stat(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	for max, want := range map[int64]int{info.Size(): 3, info.Size() + 1: 3, info.Size() - 1: 2, 3: 0} {
		if got, err := l.Last(max); err != nil || len(got) != want {
			t.Errorf("the last %d bytes: %d entries, %v", max, len(got), err)
		}
	}
}

// TestHostileNames: names come from manifests and from models.
func TestHostileNames(t *testing.T) {
	l := Open(t.TempDir())
	long := strings.Repeat("ä", 100_000)
	var args []string
	for range 1000 {
		args = append(args, long[:2000])
	}
	if err := l.Append(Entry{Event: Host, Extension: "x\n{}", Tool: long, Target: "\x00\xff", Why: long, Args: args}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(l.Path())
	if err != nil || len(data) > maxLine || strings.Count(string(data), "\n") != 1 {
		t.Error(len(data), err)
	}
	if got, err := l.Read(Query{}); err != nil || len(got) != 1 || got[0].Extension != "x\n{}" {
		t.Error(got, err)
	}
}

// TestUnwritable: who asked hears that nothing can be recorded.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir)
	if err := os.Mkdir(l.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Entry{Event: Ended, Extension: "x"}); err == nil || !strings.Contains(err.Error(), l.Path()) {
		t.Error(err)
	}
	if err := os.Remove(l.Path()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), l.Path()); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Entry{Event: Ended, Extension: "x"}); err == nil {
		t.Error("a link was followed")
	}
}

// TestFollow: what is there, then what comes, over rotations, each once.
func TestFollow(t *testing.T) {
	l := Open(t.TempDir())
	l.max = 4000
	add := func(i int) {
		t.Helper()
		if err := l.Append(Entry{Event: Ended, Extension: "x", Milliseconds: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		add(i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := make(chan int64, 1000)
	done := make(chan error, 1)
	go func() {
		done <- l.Follow(ctx, Query{}, func(e Entry) error { seen <- e.Milliseconds; return nil })
	}()
	want := int64(0)
	expect := func(until int64) {
		t.Helper()
		for want < until {
			select {
			case got := <-seen:
				if got != want {
					t.Fatalf("%d, want %d", got, want)
				}
				want++
			case <-ctx.Done():
				t.Fatalf("%d never came", want)
			}
		}
	}
	expect(30)
	for round := range 4 {
		for i := range 20 {
			add(30 + round*20 + i)
		}
		expect(int64(30 + (round+1)*20))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	stop := errors.New("enough")
	if err := l.Follow(t.Context(), Query{}, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}
