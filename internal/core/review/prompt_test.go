package review_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

// A promptView has a View's memory; what runs in ShowNow is the test's.
type promptView struct {
	*reviewtest.View
	now func(*review.Diff) error
}

func (v promptView) Show(context.Context, *review.Diff) error { panic("asked to wait") }

func (v promptView) ShowNow(d *review.Diff) error {
	if err := v.now(d); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return v.View.Show(ctx, d)
}

// SPEC F-2, F-3: a view that waits for nobody is asked on the caller's goroutine; it may
// show, refuse, fail, or have decided by the time it returns, and is closed once when it showed.
func TestPromptView(t *testing.T) {
	broken := errors.New("broken")
	var r *review.Registry
	for _, tt := range []struct {
		name    string
		now     func(*review.Diff) error
		want    error
		told    []review.Kind
		visible int
	}{
		{"shows", func(*review.Diff) error { return nil }, nil, nil, 1},
		{"refuses", func(*review.Diff) error { return broken }, broken, nil, 0},
		{"panics", func(*review.Diff) error { panic("a mistake") }, review.ErrNoView, nil, 0},
		{"decided meanwhile", func(d *review.Diff) error { return r.Accept(d.ID(), d.Now().Seen, nil) }, nil, []review.Kind{review.Accepted}, 0},
		{"decided meanwhile, then refuses", func(d *review.Diff) error { return errors.Join(r.Reject(d.ID()), broken) }, nil, []review.Kind{review.Rejected}, 0},
		{"shut meanwhile", func(*review.Diff) error { r.Shut(); return nil }, review.ErrShut, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			view := promptView{&reviewtest.View{}, tt.now}
			r = review.New(review.Options{View: view})
			owner := &reviewtest.Owner{Name: "CLI 1"}
			_, err := r.Open(t.Context(), owner, review.Proposal{Key: "/a", Path: "/a", New: "x"}, owner.Deliver)
			if !errors.Is(err, tt.want) {
				t.Errorf("Open returns %v, want %v", err, tt.want)
			}
			owner.ExpectTold(t, tt.told...)
			view.ExpectVisible(t, tt.visible)
			if pending := len(r.Pending()); pending != tt.visible {
				t.Errorf("%d diffs are open", pending)
			}
		})
	}
}
