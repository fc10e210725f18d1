package tui

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

var update = flag.Bool("update", false, "rewrite the golden screens")

// A fakeCompanion answers like a companion and records every call.
type fakeCompanion struct {
	queue   control.Queue
	texts   map[string]control.Texts
	now     map[string]string // as edited
	entries []control.PastProposal

	decided []control.Decision
	edits   []string
	rules   []review.Rule
	undone  []string
	paused  []bool

	resolved []resolved
	fail     error // returned by every call that changes something
}

func (f *fakeCompanion) Attach(context.Context) error { return nil }
func (f *fakeCompanion) Close()                       {}
func (f *fakeCompanion) Watch(context.Context, uint64) (control.Queue, error) {
	return f.queue, nil
}
func (f *fakeCompanion) Texts(_ context.Context, id string) (control.Texts, error) {
	t, ok := f.texts[id]
	if !ok {
		return t, errors.New("this diff has been decided already")
	}
	return t, nil
}

func (f *fakeCompanion) Text(_ context.Context, id string) (string, int, error) {
	if now, ok := f.now[id]; ok {
		return now, len(f.edits), nil
	}
	return f.texts[id].New, 0, nil
}

func (f *fakeCompanion) Edit(_ context.Context, id, text string, _ *int) (int, error) {
	if f.fail != nil {
		return 0, f.fail
	}
	f.edits = append(f.edits, text)
	f.now[id] = text
	return len(f.edits), nil
}

func (f *fakeCompanion) Resolve(_ context.Context, id string, seen control.Seen, theirs bool) error {
	if f.fail == nil {
		f.resolved = append(f.resolved, resolved{id, seen, theirs})
	}
	return f.fail
}

func (f *fakeCompanion) Decide(_ context.Context, d control.Decision) error {
	if f.fail != nil {
		return f.fail
	}
	f.decided = append(f.decided, d)
	return nil
}

func (f *fakeCompanion) SetRule(_ context.Context, r review.Rule) error {
	f.rules = append(f.rules, r)
	return f.fail
}

func (f *fakeCompanion) Pause(_ context.Context, paused bool) error {
	f.paused = append(f.paused, paused)
	return f.fail
}

func (f *fakeCompanion) History(context.Context) ([]control.PastProposal, error) {
	return f.entries, nil
}
func (f *fakeCompanion) PastTexts(_ context.Context, id string) (control.Texts, error) {
	return f.texts[id], nil
}

func (f *fakeCompanion) Undo(_ context.Context, id string) error {
	if f.fail != nil {
		return f.fail
	}
	f.undone = append(f.undone, id)
	return nil
}

type resolved struct {
	id     string
	seen   control.Seen
	theirs bool
}

// A bench is a model with a fake companion, a clock and simulated keys.
type bench struct {
	t *testing.T
	m *model
	f *fakeCompanion
	// clock is the current time; quit is set when the reviewer ends.
	clock time.Time
	quit  bool
}

const exampleOld = `package main

import "fmt"

// main greets.
func main() {
	name := "world"
	fmt.Println("hello", name)
	for i := 0; i < 10; i++ {
		fmt.Println(i)
	}
	fmt.Println("one")
	fmt.Println("two")
	fmt.Println("three")
	fmt.Println("four")
	fmt.Println("five")
	fmt.Println("six")
	fmt.Println("seven")
	fmt.Println("eight")
	fmt.Println("nine")
	fmt.Println("end")
}
`

func exampleNew() string {
	return strings.NewReplacer("world", "moon", "\tfmt.Println(\"two\")\n", "", "\"end\"", "\"the end\"").Replace(exampleOld)
}

func newBench(t *testing.T, w, h int) *bench {
	f := &fakeCompanion{texts: map[string]control.Texts{}, now: map[string]string{}}
	b := &bench{t: t, f: f, clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)}
	b.m = newModel(Options{Folder: "/w/proj", Editor: "vi"})
	b.m.now = func() time.Time { return b.clock }
	b.tell(tea.WindowSizeMsg{Width: w, Height: h})
	b.tell(joinedMsg{f})
	return b
}

// propose adds a diff to the queue.
func (b *bench) propose(id, path, old, proposed string) *control.Diff {
	b.f.texts[id] = control.Texts{Old: old, New: proposed, IsNew: old == ""}
	b.f.queue.Diffs = append(b.f.queue.Diffs, control.Diff{ID: id, Path: path, Owner: "Gemini CLI #1", IsNew: old == ""})
	return &b.f.queue.Diffs[len(b.f.queue.Diffs)-1]
}

// sync sends the current queue to the model, and lets it settle.
func (b *bench) sync() {
	b.f.queue.Version++
	b.f.queue.Sessions = 1
	q := b.f.queue
	q.Diffs = append([]control.Diff(nil), q.Diffs...)
	b.tell(queueMsg{q})
	b.clock = b.clock.Add(time.Second)
}

// end takes a diff out of the queue.
func (b *bench) end(id, outcome string) {
	var rest []control.Diff
	for _, d := range b.f.queue.Diffs {
		if d.ID != id {
			rest = append(rest, d)
		}
	}
	b.f.queue.Diffs = rest
	b.f.queue.Ended = append(b.f.queue.Ended, control.Ended{ID: id, Outcome: outcome})
	b.sync()
}

// tell sends a message to the model, then every message that results.
func (b *bench) tell(msg tea.Msg) { b.perform(b.m.update(msg)) }

func (b *bench) perform(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	msg := cmd()
	switch msg := msg.(type) {
	case nil:
	case tea.QuitMsg:
		b.quit = true
	case tea.BatchMsg:
		for _, c := range msg {
			b.perform(c)
		}
	default:
		if reflect.TypeOf(msg).PkgPath() == reflect.TypeOf(queueMsg{}).PkgPath() {
			b.tell(msg)
		}
	}
}

// press presses keys by their names; a second passes before each.
func (b *bench) press(keys ...string) {
	for _, k := range keys {
		b.clock = b.clock.Add(time.Second)
		typed := ""
		if len([]rune(k)) == 1 {
			typed = k
		}
		b.perform(b.m.press(k, typed))
	}
}

func (b *bench) click(x, y int) {
	b.tell(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
}

// screen returns the screen without colours.
func (b *bench) screen() string {
	b.t.Helper()
	f := b.m.frame()
	if len(f.rows) > f.h {
		b.t.Errorf("%d rows on a screen of %d", len(f.rows), f.h)
	}
	var out strings.Builder
	for _, r := range f.rows {
		if w := ansi.StringWidth(r); w > f.w {
			b.t.Errorf("a row of %d columns on a screen of %d: %q", w, f.w, ansi.Strip(r))
		}
		out.WriteString(strings.TrimRight(ansi.Strip(r), " ") + "\n")
	}
	return out.String()
}

// golden compares the screen with a file.
func (b *bench) golden(name string) {
	b.t.Helper()
	compareGolden(b.t, name, b.screen())
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// wants fails when the screen does not show a text.
func (b *bench) wants(text string) {
	b.t.Helper()
	if s := b.screen(); !strings.Contains(s, text) {
		b.t.Errorf("the screen does not show %q:\n%s", text, s)
	}
}
