package tui

import (
	"errors"
	"testing"

	"github.com/pollux-companion/pollux/internal/control"
)

// rebase changes the file of a proposal, as the companion reports it.
func (b *bench) rebase(id, old, now string, c *control.Conflict) {
	t := b.f.texts[id]
	t.Old, t.Base = old, t.Base+1
	b.f.texts[id] = t
	d := &b.f.queue.Diffs[0]
	if now != t.New {
		b.f.edits = append(b.f.edits, now)
		b.f.now[id] = now
	}
	d.Base, d.Version, d.Conflict = t.Base, len(b.f.edits), c
	b.sync()
}

// SPEC F-13: when the file changes, the proposal is shown against the new file, and accepting takes what was shown.
func TestFollowsTheFile(t *testing.T) {
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/a.txt", "one\ntwo\nthree\n", "one\ntwo\nTHREE\n")
	b.sync()
	b.rebase("1", "ONE\ntwo\nthree\n", "ONE\ntwo\nTHREE\n", nil)
	b.wants("a.txt has changed on disk; this is the proposal on what it holds now")
	b.wants("1  1   ONE")
	b.press("a")
	if d := b.decision(); *d.Content != "ONE\ntwo\nTHREE\n" || d.Seen != (control.Seen{Version: 1, Base: 1}) {
		t.Errorf("%+v, %q", d, *d.Content)
	}
	// The companion refuses an outdated decision; the diff stays.
	b = newBench(t, 80, 24)
	example(b)
	b.f.fail = errors.New("the file has changed since this was shown: look at it again before you accept it")
	b.press("a")
	b.wants("the file has changed since this was shown")
}

// SPEC F-13: a conflict is shown beside the text, and nothing is accepted before the user has chosen a side.
func TestStandoff(t *testing.T) {
	for key, theirs := range map[string]bool{"k": false, "t": true} {
		b := newBench(t, 80, 24)
		b.propose("1", "/w/proj/a.txt", "one\ntwo\n", "one\n2\n")
		b.sync()
		b.rebase("1", "one\nTWO\n", "one\n2\n", &control.Conflict{Reason: "the file has changed on disk where the proposal changes it", Places: []control.Place{{Start: 1, End: 2, Text: "TWO\n"}}})
		b.wants("a.txt: the file has changed on disk where the proposal changes it")
		b.wants("!")
		b.press("a")
		b.wants("On disk: TWO")
		b.press("n", "a", "esc", "a", "y", "a")
		if len(b.f.decided)+len(b.f.resolved) > 0 {
			t.Fatalf("decided: %+v %+v", b.f.decided, b.f.resolved)
		}
		b.press(key)
		if len(b.f.resolved) != 1 || b.f.resolved[0] != (resolved{"1", control.Seen{Base: 1}, theirs}) {
			t.Errorf("%+v", b.f.resolved)
		}
	}
	// A deleted file has no lines to take.
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/a.txt", "one\n", "2\n")
	b.sync()
	b.rebase("1", "", "2\n", &control.Conflict{Reason: "the file is gone from the disk"})
	b.press("a", "t", "k")
	if len(b.f.resolved) != 1 || b.f.resolved[0].theirs {
		t.Errorf("%+v", b.f.resolved)
	}
	b.f.queue.Diffs[0].Conflict = nil
	b.sync()
	b.press("a")
	b.decision()
}
