package journal

import (
	"context"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
)

type view struct{}

func (view) Show(context.Context, *review.Diff) error             { return nil }
func (view) Close(*review.Diff, review.Outcome)                   {}
func (view) Content(context.Context, *review.Diff) (string, bool) { return "", false }

type owner struct {
	t  *testing.T
	j  *Journal
	n  uint64
	id string
}

func (*owner) Label() string { return "somebody" }
func (o *owner) Settled(d *review.Diff, out review.Outcome) {
	o.n++
	if out.Kind == review.Accepted {
		o.j.Decided(d.ID(), &out.Content, "accepted", "LIFE", o.n)
	} else {
		o.j.Decided(d.ID(), nil, "rejected", "LIFE", o.n)
	}
}

// open opens a diff as a session does.
func (o *owner) open(r *review.Registry, p review.Proposal) *review.Diff {
	o.t.Helper()
	d, err := r.Open(o.t.Context(), o, p, func(d *review.Diff) { o.j.Opened(o.id, d) })
	if err != nil {
		o.t.Fatal(err)
	}
	return d
}

func open(t *testing.T, dir string) *Journal {
	return Open(dir, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

func TestX(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	r := review.New(review.Options{View: view{}})
	j.Follow(r)
	o := &owner{t: t, j: j, id: "s"}
	d := o.open(r, review.Proposal{Key: "k", Path: "/k", Old: "a", New: "b"})
	r.Edit(d.ID(), "bc")
	k := open(t, dir)
	t.Logf("%+v", k.Diffs())
	t.Log(k.Texts(d.ID()))
	r.Accept(d.ID(), nil)
	k = open(t, dir)
	t.Logf("%+v", k.Diffs())
	t.Log(k.Texts(d.ID()))
}
