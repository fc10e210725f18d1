package reviewtest

import (
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// The fake is held to the same contract as the editors that it stands for.
func TestFakePassesItsOwnSuite(t *testing.T) {
	Suite(t, func(t *testing.T, r *review.Registry) Subject {
		view := &View{}
		t.Cleanup(func() {
			r.Shut()
			view.mu.Lock()
			defer view.mu.Unlock()
			if len(view.shown) != len(view.closed) {
				t.Errorf("%d diffs shown, %d closed", len(view.shown), len(view.closed))
			}
		})
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		return Subject{
			View: view,
			Edit: func(d *review.Diff, edited string) {
				_, err := r.Edit(d.ID(), review.Edit{Text: text.FromLF(d.Proposal().New, edited)})
				must(err)
			},
			Accept: func(d *review.Diff) { must(r.Accept(d.ID(), d.Now().Seen, nil)) },
			Reject: func(d *review.Diff) { must(r.Reject(d.ID())) },
		}
	})
}
