package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// start opens a history, and has it pruned as a companion does; it is closed with the test.
func start(t *testing.T, dir string, o *Options) *History {
	t.Helper()
	h, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { finish(t, h) })
	h.Prune()
	return h
}

// finish closes h and thereby waits for what it has to write.
func finish(t *testing.T, h *History) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		t.Error(err)
	}
}

func ids(t *testing.T, h *History) (list []string) {
	t.Helper()
	infos, err := h.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		list = append(list, i.ID)
	}
	return list
}

func entry(id string, settled time.Time) Entry {
	return Entry{Info: Info{ID: id, Path: "/w/" + id, Settled: settled, Opened: settled, Outcome: review.Accepted}, Old: "old", New: "new", Final: "new"}
}

// SPEC F-12, from the diff to the next companion's list.
func TestEveryOutcomeIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "history")
	h := start(t, dir, nil)
	r := review.New(review.Options{View: &reviewtest.View{}})
	h.Follow(r)
	owner := &reviewtest.Owner{Name: "Gemini CLI #7"}
	accepted := owner.Propose(t, r, "/w/a", "\ufeffold\r\nwith \xff bytes", "new\n")
	if _, err := r.Edit(accepted.ID(), review.Edit{Text: "edited\n"}); err != nil {
		t.Fatal(err)
	}
	rejected := owner.Propose(t, r, "/w/b", "", "new")
	withdrawn := owner.Propose(t, r, "/w/c", "old", "")
	if err := r.Accept(accepted.ID(), accepted.Now().Seen, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Withdraw(t.Context(), owner, "/w/c"); err != nil {
		t.Fatal(err)
	}
	r.SetRule(review.Rule{Mode: review.AcceptAll, Pattern: "/w/d"})
	byRule := owner.Propose(t, r, "/w/d", "old", "by rule")
	r.Shut()
	finish(t, h)

	h = start(t, dir, nil)
	want := map[string]Entry{
		accepted.ID():  {Info{Path: "/w/a", Outcome: review.Accepted, Edited: true}, "\ufeffold\r\nwith \xff bytes", "new\n", "edited\n"},
		rejected.ID():  {Info{Path: "/w/b", Outcome: review.Rejected, IsNew: true}, "", "new", ""},
		withdrawn.ID(): {Info{Path: "/w/c", Outcome: review.Withdrawn}, "old", "", ""},
		byRule.ID():    {Info{Path: "/w/d", Outcome: review.Accepted, Policy: true}, "old", "by rule", "by rule"},
	}
	list, err := h.List()
	if err != nil || len(list) != len(want) {
		t.Fatalf("listed %v, %v; want %d", list, err, len(want))
	}
	for _, info := range list {
		got, err := h.Get(info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Info != info {
			t.Errorf("listed %+v, got %+v", info, got.Info)
		}
		if info.Owner != "Gemini CLI #7" || info.Title == "" || info.Settled.Before(info.Opened) || time.Since(info.Opened) > time.Minute {
			t.Errorf("got %+v", info)
		}
		w := want[info.ID]
		got.Info = Info{Path: info.Path, Outcome: info.Outcome, Edited: info.Edited, Policy: info.Policy, IsNew: info.IsNew}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := h.Get("../../etc/passwd"); !errors.Is(err, ErrNoEntry) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, ErrNoEntry)
	}
}

func TestUndoable(t *testing.T) { // SPEC F-12
	text := func(s string) *string { return &s }
	for _, tt := range []struct {
		name    string
		outcome review.Kind
		current *string
		want    bool
	}{
		{"as written", review.Accepted, text("a\nb\n"), true},
		{"written with the file's own line endings", review.Accepted, text("\ufeffa\r\nb\r\n"), true},
		{"accepted in the terminal", review.Withdrawn, text("a\nb\n"), true},
		{"rejected", review.Rejected, text("a\nb\n"), false},
		{"changed since", review.Accepted, text("a\nb\nc\n"), false},
		{"never written", review.Withdrawn, text("old"), false},
		{"gone", review.Accepted, nil, false},
	} {
		data, err := encoded(Entry{Info: Info{Outcome: tt.outcome}, Old: "old", New: "x", Final: "a\nb\n"})
		if err != nil {
			t.Fatal(err)
		}
		e, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Undoable(tt.current); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// SPEC F-12: 100 entries, 50 MB, 7 days, whichever is least.
func TestBounds(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		opt  Options
		want string
	}{
		{"entries", Options{MaxEntries: 2}, "E D"},
		{"age", Options{MaxAge: 150 * time.Minute}, "E D C"},
		{"bytes", Options{MaxBytes: 25_000}, "E D"},
		{"none", Options{}, "E D C B A"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, t.TempDir(), &tt.opt)
			for i, id := range strings.Fields("A B C D E") {
				e := entry(id, now.Add(time.Duration(i-4)*time.Hour))
				e.Old = strings.Repeat("x", 10_000)
				h.add(e)
			}
			huge := entry("HUGE", now)
			huge.Old = strings.Repeat("x", 26_000)
			if tt.opt.MaxBytes > 0 {
				if err := h.save(huge); err == nil {
					t.Error("an entry larger than the history was written")
				}
			}
			finish(t, h)
			if got := strings.Join(ids(t, h), " "); got != tt.want {
				t.Errorf("kept %q, want %q", got, tt.want)
			}
		})
	}
}

// What waits to be written is bounded as well, when the disk is slow.
func TestQueueIsBounded(t *testing.T) {
	h := &History{opt: (&Options{MaxEntries: 3}).orDefault(), wake: make(chan struct{}, 1)}
	for i := range 10 {
		h.add(entry(fmt.Sprint(i), time.Now()))
	}
	if len(h.queue) != 3 || h.queue[2].ID != "9" {
		t.Errorf("%d entries wait", len(h.queue))
	}
	big := entry("big", time.Now())
	big.New = strings.Repeat("x", 49_999_000)
	big.Final = big.New
	h.add(big)
	if len(h.queue) != 1 || h.queue[0].ID != "big" {
		t.Errorf("%d entries wait", len(h.queue))
	}
}

// SPEC C-8: what holds secrets is not kept, neither a proposal nor an edit that another one replaced.
func TestSecretsAreNotKept(t *testing.T) {
	dir := t.TempDir()
	h := start(t, dir, &Options{Secret: func(path string) bool { return strings.HasSuffix(path, ".env") }})
	r := review.New(review.Options{View: &reviewtest.View{}})
	h.Follow(r)
	owner := &reviewtest.Owner{Name: "a"}
	for _, path := range []string{"/w/.env", "/w/a"} {
		d := owner.Propose(t, r, path, "PASSWORD=old", "PASSWORD=new")
		from := 0
		for _, by := range []string{"one", "two"} {
			if _, err := r.Edit(d.ID(), review.Edit{Text: "PASSWORD=" + by, From: &from, By: by}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Accept(d.ID(), d.Now().Seen, nil); err != nil {
			t.Fatal(err)
		}
	}
	e := entry("other", time.Now())
	e.Path = "/w/.env"
	h.Keep(e)
	finish(t, h)
	infos, err := start(t, dir, nil).List()
	if err != nil || len(infos) != 2 || infos[0].Path != "/w/a" || infos[1].Path != "/w/a" {
		t.Errorf("%+v, %v", infos, err)
	}
}

func TestOff(t *testing.T) {
	dir := t.TempDir()
	h := start(t, dir, nil)
	h.add(entry("BEFORE", time.Now()))
	finish(t, h)
	h = start(t, dir, &Options{Off: true})
	r := review.New(review.Options{View: &reviewtest.View{}})
	h.Follow(r)
	(&reviewtest.Owner{}).Propose(t, r, "/a", "", "x")
	r.Shut()
	finish(t, h)
	if got := ids(t, h); !slices.Equal(got, []string{"BEFORE"}) {
		t.Errorf("kept %q", got)
	}
}

// A damaged entry is left out and removed, everything else stays.
func TestDamage(t *testing.T) {
	good, err := encoded(entry("BAD", time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(good, []byte(`"format":1`), []byte(`"format":2`), 1)
	for _, tt := range []struct {
		name    string
		data    []byte
		listed  bool // its texts are wrong, its head is not
		removed bool
	}{
		{"empty", nil, false, true},
		{"not JSON", []byte("hello\n"), false, true},
		{"no head's end", []byte(`{"format":1}`), false, true},
		{"no format", []byte("{}\n"), false, true},
		{"cut off", good[:len(good)-1], false, true},
		{"too long", append(slices.Clone(good), 'x'), false, true},
		{"negative length", bytes.Replace(good, []byte(`"oldSize":3`), []byte(`"oldSize":-3`), 1), false, true},
		{"lengths that overflow", bytes.Replace(good, []byte(`"oldSize":3`), []byte(`"oldSize":9223372036854775807`), 1), false, true},
		{"another text", append(slices.Clone(good[:len(good)-1]), 'x'), true, true},
		{"another entry's", bytes.Replace(good, []byte(`"id":"BAD"`), []byte(`"id":"BED"`), 1), false, true},
		{"of a newer pollux", newer, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, t.TempDir(), nil)
			if err := os.Mkdir(h.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(h.dir, fmt.Sprintf("%013d-BAD.entry", time.Now().UnixMilli()))
			if err := os.WriteFile(name, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(h.dir, "notes.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			h.add(entry("GOOD", time.Now().Add(time.Second)))
			finish(t, h)
			if got := ids(t, h); slices.Contains(got, "BAD") != tt.listed || !slices.Contains(got, "GOOD") {
				t.Errorf("listed %q", got)
			}
			if e, err := h.Get("BAD"); err == nil {
				t.Errorf("got %+v", e)
			}
			if _, err := os.Stat(name); os.IsNotExist(err) != tt.removed {
				t.Errorf("removed: %v, want %v", os.IsNotExist(err), tt.removed)
			}
			if _, err := os.Stat(filepath.Join(h.dir, "notes.txt")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Workspaces do not mix; one that nobody opens any more is emptied all the same.
func TestWorkspaces(t *testing.T) {
	dir := t.TempDir()
	old := start(t, dir, &Options{Roots: []string{"/old"}})
	old.add(entry("OLD", time.Now().Add(-6*24*time.Hour)))
	finish(t, old)
	one := start(t, dir, &Options{Roots: []string{"/a", "/b"}})
	one.add(entry("ONE", time.Now()))
	finish(t, one)
	if got := ids(t, start(t, dir, &Options{Roots: []string{"/b", "/a"}})); !slices.Equal(got, []string{"ONE"}) {
		t.Errorf("listed %q", got)
	}
	temp := filepath.Join(old.dir, ".pollux-tmp-X")
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(temp, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	two := start(t, dir, &Options{Roots: []string{"/a"}, MaxAge: 5 * 24 * time.Hour})
	if got := ids(t, two); len(got) != 0 {
		t.Errorf("another workspace's %q are listed", got)
	}
	if _, err := os.Stat(old.dir); !os.IsNotExist(err) {
		t.Errorf("the old workspace's folder: %v", err)
	}
	if got := ids(t, old); len(got) != 0 {
		t.Errorf("listed %q of a folder that is gone", got)
	}
	if err := old.save(entry("AGAIN", time.Now())); err != nil { // its companion lives after all
		t.Error(err)
	}
}

// Two companions of one workspace, readers beside them.
func TestTwoCompanions(t *testing.T) {
	dir := t.TempDir()
	a, b := start(t, dir, &Options{MaxEntries: 20}), start(t, dir, &Options{MaxEntries: 20})
	var wg sync.WaitGroup
	for name, h := range map[string]*History{"A": a, "B": b} {
		wg.Go(func() {
			for i := range 30 {
				h.add(entry(fmt.Sprint(name, i), time.Now()))
				for _, id := range ids(t, h) {
					if e, err := h.Get(id); err == nil && e.Old != "old" || err != nil && !errors.Is(err, ErrNoEntry) {
						t.Errorf("got %+v, %v", e, err)
					}
				}
			}
		})
	}
	wg.Wait()
	finish(t, a)
	finish(t, b)
	if n := len(ids(t, a)); n != 20 {
		t.Errorf("%d entries are kept, want 20", n)
	}
}

// Close waits no longer than it may.
func TestCloseHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &History{opt: (*Options)(nil).orDefault(), done: make(chan struct{}), wake: make(chan struct{}, 1)} // whose writer hangs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// encoded is an entry's file as a whole.
func encoded(e Entry) ([]byte, error) {
	pieces, err := encode(e)
	return []byte(strings.Join(pieces, "")), err
}

// The sums are of the final text with line feeds, and of all texts, also where one of them serves as both.
func TestSums(t *testing.T) {
	large := strings.Repeat("package x // Größe\n", 1<<13)
	for _, e := range []Entry{
		{}, {New: "x", Final: "x"}, {New: large, Final: large}, {New: "x\r\n", Final: "x\r\n"}, {New: "\ufeffx", Final: "\ufeffx"},
		{New: "x", Final: ""}, {New: "x\r\n", Final: "x\n"}, {Old: "x", New: "x", Final: "x"}, {Old: large, New: large + "\r", Final: large},
	} {
		data, err := encoded(e)
		if err != nil {
			t.Fatal(err)
		}
		line, texts, _ := bytes.Cut(data, []byte("\n"))
		var h head
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatal(err)
		}
		all, final := sha256.Sum256(texts), sha256.Sum256([]byte(text.ToLF(e.Final)))
		if h.Check != hex.EncodeToString(all[:]) || h.Sum != hex.EncodeToString(final[:]) {
			t.Errorf("%.20q, %.20q, %.20q: sums %s and %s, want %x and %x", e.Old, e.New, e.Final, h.Check, h.Sum, all, final)
		}
		if back, err := decode(data); err != nil || back.Old != e.Old || back.New != e.New || back.Final != e.Final {
			t.Errorf("%.20q, %.20q, %.20q came back as another entry, %v", e.Old, e.New, e.Final, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	good, _ := encoded(Entry{Info: Info{ID: "X"}, Old: "old", New: "new", Final: "final"})
	f.Add(good)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decode(data)
		if err != nil {
			return
		}
		again, err := encoded(e)
		if err != nil {
			t.Fatal(err)
		}
		if e2, err := decode(again); err != nil || e2.Old != e.Old || e2.New != e.New || e2.Final != e.Final {
			t.Errorf("%+v became %+v, %v", e, e2, err)
		}
	})
}

// SPEC F-12: what a person decided outlives what agents took back and what rules decided, however many these are; of equals, the
// session goes first that takes most.
func TestOneSessionCannotPushAnotherOutF12(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	h := start(t, dir, &Options{MaxEntries: 20})
	at := time.Now().Add(-time.Hour)
	n := 0
	keep := func(owner, id string, kind review.Kind, change func(*Entry)) {
		n++
		e := Entry{Info: Info{ID: id, Path: "/w/" + id, Owner: owner, Outcome: kind, Settled: at.Add(time.Duration(n) * time.Millisecond)}, Old: "old", New: "new", Final: "new"}
		if change != nil {
			change(&e)
		}
		h.Keep(e)
	}
	keep("CLI #1", "accepted", review.Accepted, nil)
	keep("CLI #1", "rejected", review.Rejected, nil)
	keep("CLI #1", "written", review.Withdrawn, func(e *Entry) { e.Edited, e.Final = true, "mine" })
	keep("CLI #1", "withdrawn", review.Withdrawn, nil)
	for i := range 110 {
		keep("CLI #2", fmt.Sprint("quick", i), review.Withdrawn, nil)
		keep("CLI #3", fmt.Sprint("rule", i), review.Accepted, func(e *Entry) { e.Policy = true })
	}
	for i := range 30 { // nor does a session in which much is decided
		keep("CLI #4", fmt.Sprint("many", i), review.Accepted, nil)
	}
	keep("CLI #2", "newest", review.Withdrawn, nil)
	finish(t, h)
	list, err := start(t, dir, nil).List()
	if err != nil || len(list) != 20 {
		t.Fatalf("%d are left, %v", len(list), err)
	}
	left := map[string]bool{}
	for _, info := range list {
		left[info.ID] = true
	}
	for _, id := range []string{"accepted", "rejected", "written", "many29", "newest"} {
		if !left[id] {
			t.Errorf("%s is gone; left: %v", id, left)
		}
	}
}
