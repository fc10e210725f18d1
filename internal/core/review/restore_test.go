package review_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// restoreOwner and restoreView record what they are told.
type restoreOwner struct{ told []review.Outcome }

func (o *restoreOwner) Label() string                              { return "Gemini CLI #1" }
func (o *restoreOwner) Settled(_ *review.Diff, out review.Outcome) { o.told = append(o.told, out) }

type restoreView struct {
	fail   error
	closed int
}

func (v *restoreView) Show(context.Context, *review.Diff) error { return v.fail }
func (v *restoreView) Close(*review.Diff, review.Outcome)       { v.closed++ }
func (v *restoreView) Content(context.Context, *review.Diff) (review.Edit, bool) {
	return review.Edit{}, false
}

// SPEC L-3: the diff of an earlier life is open under its id with the user's
// edits, is decided as any other, and is closed in views that found it later.
func TestRestoreL3(t *testing.T) {
	for _, fail := range []error{nil, review.ErrNoView} {
		synctest.Test(t, func(t *testing.T) {
			view, owner := &restoreView{fail: fail}, &restoreOwner{}
			r := review.New(review.Options{View: view})
			var events []review.Event
			r.Watch(func(e review.Event) { events = append(events, e) })
			opened := time.Now().Add(-time.Minute)
			p := review.Proposal{Key: "/f", Path: "/f", Old: "a", New: "b"}
			d, err := r.Restore(owner, "ID", "edited", nil, opened, p)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			text, version := d.Text()
			if got, ok := r.Get("ID"); !ok || got != d || text != "edited" || version == 0 || !d.Opened().Equal(opened) || d.Proposal() != p {
				t.Errorf("%v %v %q %d", got, ok, text, version)
			}
			if _, err := r.Restore(owner, "ID", "", nil, opened, review.Proposal{Key: "/g"}); !errors.Is(err, review.ErrSettled) {
				t.Errorf("its id again: %v", err)
			}
			if _, err := r.Restore(owner, "ID2", "", nil, opened, p); !errors.Is(err, review.ErrSettled) {
				t.Errorf("its key again: %v", err)
			}
			if err := r.Accept("ID", d.Now().Seen, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(owner.told) != 1 || owner.told[0].Content != "edited" || !owner.told[0].Edited {
				t.Errorf("the owner heard %+v", owner.told)
			}
			if view.closed != 1 || len(events) != 2 || events[0].Outcome != nil || events[1].Outcome == nil {
				t.Errorf("closed %d times, events %+v", view.closed, events)
			}
			r.Shut()
			if _, err := r.Restore(owner, "ID3", "", nil, opened, review.Proposal{}); !errors.Is(err, review.ErrShut) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// SPEC L-4: a registry that retires decides nothing, closes no view and ends nothing for an owner that leaves; what its owner has no
// answer about yet is withdrawn, and its owner may take back what is open.
func TestRetireL4(t *testing.T) {
	view, owner := &restoreView{}, &restoreOwner{}
	r := review.New(review.Options{View: view})
	open := func(key string, waits bool) *review.Diff {
		t.Helper()
		d, err := r.Open(t.Context(), owner, review.Proposal{Key: key, Path: "/" + key, Old: "old", New: "new", Waits: waits}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b, waiting := open("a", false), open("b", false), open("c", true)
	r.Retire()
	if o, over := waiting.Outcome(); !over || o.Kind != review.Withdrawn {
		t.Errorf("the one whose agent waits: %v, %v", o, over)
	}
	r.Leave(owner)
	r.SetRule(review.Rule{Mode: review.AcceptAll})
	for _, err := range []error{r.Accept(a.ID(), a.Now().Seen, nil), r.Reject(a.ID())} {
		wantErr(t, err, review.ErrShut)
	}
	if _, err := r.Open(t.Context(), owner, review.Proposal{Key: "a", Path: "/a", New: "newer"}, nil); !errors.Is(err, review.ErrShut) {
		t.Errorf("opening: %v", err)
	}
	for _, d := range []*review.Diff{a, b} {
		if o, over := d.Outcome(); over {
			t.Errorf("%s has ended: %v", d.Proposal().Key, o)
		}
	}
	if view.closed > 1 || len(owner.told) > 0 {
		t.Errorf("%d views were closed, and the owner was told %v", view.closed, owner.told)
	}
	if o, err := r.Withdraw(t.Context(), owner, "b"); err != nil || o.Content != "new" {
		t.Errorf("taking back: %+v, %v", o, err)
	}
}

// SPEC L-4: where nobody looks, no rule accepts what comes.
func TestAlwaysAskL4(t *testing.T) {
	owner := &restoreOwner{}
	r := review.New(review.Options{View: &restoreView{}, AlwaysAsk: true})
	r.SetRule(review.Rule{Mode: review.AcceptAll})
	d, err := r.Open(t.Context(), owner, review.Proposal{Key: "a", Path: "/a", New: "new"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o, over := d.Outcome(); over {
		t.Errorf("it was decided: %v", o)
	}
}
