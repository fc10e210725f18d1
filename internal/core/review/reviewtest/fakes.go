// Package reviewtest holds what tests of code around review need: a view and
// an owner that remember what they were told, and the suite that every
// review.View passes.
package reviewtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// patience is how long an Expect waits for other goroutines.
const patience = 30 * time.Second

// A View is an editor that shows everything and remembers it. Its zero value
// is ready; the functions change what it does, and are set before its use.
type View struct {
	// OnShow, when set, runs in Show and gives its result; OnContent does the same for Content.
	OnShow    func(ctx context.Context, d *review.Diff) error
	OnContent func(ctx context.Context, d *review.Diff) (string, bool)

	mu     sync.Mutex // guards all below
	shown  map[string]int
	closed map[string]review.Outcome
	wrong  []string // calls that no registry may make
}

// Show implements review.View.
func (v *View) Show(ctx context.Context, d *review.Diff) error {
	if _, ok := ctx.Deadline(); !ok {
		v.complain("Show of %s has no deadline", d.Proposal().Key)
	}
	if v.OnShow != nil {
		if err := v.OnShow(ctx, d); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown == nil {
		v.shown, v.closed = make(map[string]int), make(map[string]review.Outcome)
	}
	v.shown[d.ID()]++
	if v.shown[d.ID()] > 1 {
		v.wrong = append(v.wrong, fmt.Sprintf("%s was shown twice", d.Proposal().Key))
	}
	return nil
}

// Close implements review.View.
func (v *View) Close(d *review.Diff, o review.Outcome) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, twice := v.closed[d.ID()]; twice || v.shown[d.ID()] == 0 {
		v.wrong = append(v.wrong, fmt.Sprintf("%s was closed without being open", d.Proposal().Key))
		return
	}
	v.closed[d.ID()] = o
}

// Content implements review.View; it knows nothing newer unless OnContent does.
func (v *View) Content(ctx context.Context, d *review.Diff) (review.Edit, bool) {
	if _, ok := ctx.Deadline(); !ok {
		v.complain("Content of %s has no deadline", d.Proposal().Key)
	}
	if v.OnContent != nil {
		content, ok := v.OnContent(ctx, d)
		return review.Edit{Text: content}, ok
	}
	return review.Edit{}, false
}

func (v *View) complain(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// visible counts the diffs that were shown and not closed.
func (v *View) visible() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.shown) - len(v.closed)
}

// ExpectVisible waits until n diffs are visible. It fails the test when that takes too
// long, or when the registry broke the contract of review.View.
func (v *View) ExpectVisible(t testing.TB, n int) {
	t.Helper()
	eventually(t, func() string {
		if got := v.visible(); got != n {
			return fmt.Sprintf("%d diffs are visible, want %d", got, n)
		}
		return ""
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, complaint := range v.wrong {
		t.Error(complaint)
	}
}

// An Owner is an agent's session that remembers what it was told.
type Owner struct {
	// Name is its label.
	Name string

	mu      sync.Mutex // guards all below
	told    []Told
	answers map[string]bool // the ids that were delivered
	wrong   []string
}

// Told is one call of Owner.Settled.
type Told struct {
	Key     string
	Outcome review.Outcome
}

// Label implements review.Owner.
func (o *Owner) Label() string { return o.Name }

// Settled implements review.Owner.
func (o *Owner) Settled(d *review.Diff, outcome review.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.answers[d.ID()] {
		o.wrong = append(o.wrong, fmt.Sprintf("%s was settled before it was answered, or twice", d.Proposal().Key))
	}
	delete(o.answers, d.ID())
	o.told = append(o.told, Told{d.Proposal().Key, outcome})
}

// Deliver is the deliver argument of Registry.Open. Settled complains when it is called before.
func (o *Owner) Deliver(d *review.Diff) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answers == nil {
		o.answers = make(map[string]bool)
	}
	o.answers[d.ID()] = true
}

// Propose opens a diff of path, from old to proposed, and fails the test on an error.
func (o *Owner) Propose(t testing.TB, r *review.Registry, path, old, proposed string) *review.Diff {
	t.Helper()
	p := review.Proposal{Key: path, Path: path, Old: old, IsNew: old == "", New: proposed, Title: path + " by " + o.Name}
	d, err := r.Open(context.Background(), o, p, o.Deliver)
	if err != nil {
		t.Fatalf("opening the diff of %s: %v", path, err)
	}
	return d
}

// Told returns what Settled was told so far, in order.
func (o *Owner) Told() []Told {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Told(nil), o.told...)
}

// ExpectTold waits until Settled was called once for each of kinds. It fails the test
// when the kinds differ, or when the registry broke the contract of review.Owner.
func (o *Owner) ExpectTold(t testing.TB, kinds ...review.Kind) []Told {
	t.Helper()
	var told []Told
	eventually(t, func() string {
		told = o.Told()
		if len(told) < len(kinds) {
			return fmt.Sprintf("%s was told %v, want %v", o.Name, told, kinds)
		}
		return ""
	})
	if len(told) != len(kinds) {
		t.Fatalf("%s was told %v, want %v", o.Name, told, kinds)
	}
	for i, kind := range kinds {
		if told[i].Outcome.Kind != kind {
			t.Errorf("%s was told %v, want %v", o.Name, told, kinds)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, complaint := range o.wrong {
		t.Error(complaint)
	}
	return told
}

// eventually waits until problem returns "", and fails the test with its last word.
func eventually(t testing.TB, problem func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		what := problem()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}
