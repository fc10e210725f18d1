package review_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// SPEC F-11, through the registry.
func TestRulesDecide(t *testing.T) {
	s := newScene(review.Options{})
	waiting := s.one.Propose(t, s.Registry, "/w/waiting", "", "new")
	edited := s.one.Propose(t, s.Registry, "/w/edited", "", "new")
	except := s.one.Propose(t, s.Registry, "/w/except", "", "new")
	other := s.two.Propose(t, s.Registry, "/w/other", "", "new")
	if _, err := s.Edit(edited.ID(), review.Edit{Text: "by the user"}); err != nil {
		t.Fatal(err)
	}
	s.SetRule(review.Rule{Mode: review.Ask, Pattern: "/w/except"})
	s.SetRule(review.Rule{Mode: review.Terminal}) // decides nothing that is open
	if n := len(s.Pending()); n != 4 {
		t.Fatalf("%d diffs are open, want 4", n)
	}
	s.SetRule(review.Rule{Mode: review.AcceptAll, Owner: "CLI 1"})
	if got, want := s.Pending(), []*review.Diff{edited, except, other}; !slices.Equal(got, want) {
		t.Errorf("open are %v, want %v", got, want)
	}
	if _, ok := s.Get(waiting.ID()); ok {
		t.Error("the waiting diff is still open")
	}
	if o := s.one.ExpectTold(t, review.Accepted)[0].Outcome; o != (review.Outcome{Kind: review.Accepted, Content: "new", Policy: true}) {
		t.Errorf("outcome %+v", o)
	}
	later := s.one.Propose(t, s.Registry, "/w/later", "", "new") // accepted without being shown
	if edited.Ruled() || other.Ruled() || !later.Ruled() {
		t.Errorf("ruled: edited %v, other %v, later %v; want the last alone", edited.Ruled(), other.Ruled(), later.Ruled())
	}
	s.view.ExpectVisible(t, 3)
	s.one.ExpectTold(t, review.Accepted, review.Accepted)
	if _, err := s.Open(t.Context(), s.two, review.Proposal{Key: "/x", Path: "/x"}, nil); !errors.Is(err, review.ErrDeclined) {
		t.Errorf("error %v, want %v", err, review.ErrDeclined)
	}
	want := []review.Rule{{Mode: review.Ask, Pattern: "/w/except"}, {Mode: review.Terminal}, {Mode: review.AcceptAll, Owner: "CLI 1"}}
	if got := s.Rules(); !slices.Equal(got, want) {
		t.Errorf("rules %v, want %v", got, want)
	}
	s.Leave(s.one) // takes the rule for it along
	s.SetRule(review.Rule{Mode: review.Ask})
	if got := s.Rules(); !slices.Equal(got, want[:1]) {
		t.Errorf("rules %v, want %v", got, want[:1])
	}
	s.Shut()
	s.view.ExpectVisible(t, 0)
	s.two.ExpectTold(t, review.Rejected)
}
