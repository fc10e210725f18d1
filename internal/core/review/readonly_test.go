package review_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

const whyNot = "the agent takes no edits"

// asIs is a scene with a file and a proposal for it that cannot be edited.
func asIs(t *testing.T, view *reviewtest.View) (*review.Registry, *disk, *reviewtest.Owner, *review.Diff) {
	t.Helper()
	files := &disk{}
	files.write("/a", oldText)
	r := review.New(review.Options{View: view, Files: files})
	t.Cleanup(r.Shut)
	owner := &reviewtest.Owner{}
	d, err := r.Open(t.Context(), owner, review.Proposal{Key: "tab", Path: "/a", Old: oldText, New: newText, ReadOnly: whyNot, Waits: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, files, owner, d
}

// SPEC GC-3: no edit of a proposal that its agent takes as it is gets in, whichever way it comes, and none is ever said to count.
func TestReadOnlyGC3(t *testing.T) {
	t.Parallel()
	edited := newText + "mine\n"
	for name, try := range map[string]func(r *review.Registry, d *review.Diff) error{
		"edit": func(r *review.Registry, d *review.Diff) error {
			_, err := r.Edit(d.ID(), review.Edit{Text: edited})
			return err
		},
		"edit of version": func(r *review.Registry, d *review.Diff) error {
			from := 0
			_, err := r.Edit(d.ID(), review.Edit{Text: edited, From: &from})
			return err
		},
		"unsure edit": func(r *review.Registry, d *review.Diff) error {
			from := 0
			_, err := r.Edit(d.ID(), review.Edit{Text: edited, From: &from, Unsure: true})
			return err
		},
		"accept edited": func(r *review.Registry, d *review.Diff) error { return r.Accept(d.ID(), review.Seen{}, &edited) },
		"accept emptied": func(r *review.Registry, d *review.Diff) error {
			none := ""
			return r.Accept(d.ID(), review.Seen{}, &none)
		},
		"accept stale": func(r *review.Registry, d *review.Diff) error {
			return r.Accept(d.ID(), review.Seen{Text: 7, Base: 7}, &edited)
		},
		"one byte less": func(r *review.Registry, d *review.Diff) error {
			less := newText[1:]
			return r.Accept(d.ID(), review.Seen{}, &less)
		},
		"without last line end": func(r *review.Registry, d *review.Diff) error {
			less := strings.TrimSuffix(newText, "\n")
			return r.Accept(d.ID(), review.Seen{}, &less)
		},
	} {
		r, _, owner, d := asIs(t, &reviewtest.View{})
		if err := try(r, d); !errors.Is(err, review.ErrReadOnly) || !strings.Contains(err.Error(), whyNot) {
			t.Errorf("%s: %v", name, err)
		}
		if text, version := d.Text(); text != newText || version != 0 || len(owner.Told()) > 0 {
			t.Errorf("%s: the text is %q (%d), told %v", name, text, version, owner.Told())
		}
		if err := r.Accept(d.ID(), review.Seen{}, nil); err != nil {
			t.Errorf("%s: and then: %v", name, err)
		}
		if o, _ := d.Outcome(); o.Edited || o.Content != newText {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// SPEC GC-3: a view's own line ends are no edit, and neither is what it says when the proposal is taken back.
func TestReadOnlyAsShownGC3(t *testing.T) {
	t.Parallel()
	crlf := strings.ReplaceAll(newText, "\n", "\r\n")
	r, _, _, d := asIs(t, &reviewtest.View{})
	if _, err := r.Edit(d.ID(), review.Edit{Text: crlf}); err != nil {
		t.Error(err)
	}
	if err := r.Accept(d.ID(), review.Seen{}, &crlf); err != nil {
		t.Error(err)
	}
	if o, _ := d.Outcome(); o.Edited || o.Content != newText {
		t.Errorf("%+v", o)
	}
	r, _, owner, d := asIs(t, &reviewtest.View{OnContent: func(context.Context, *review.Diff) (string, bool) { return "typed all the same\n", true }})
	if o, err := r.Withdraw(t.Context(), owner, "tab"); err != nil || o.Edited || o.Content != newText {
		t.Errorf("%+v, %v; %s", o, err, d.ID())
	}
}

// SPEC GC-3, F-13: what becomes of the file is no edit either: it is in the way until the user says that the proposal stands, and its
// text cannot be taken instead.
func TestReadOnlyFileChangesGC3(t *testing.T) {
	t.Parallel()
	r, files, _, d := asIs(t, &reviewtest.View{})
	files.write("/a", "zero\n"+oldText)
	if err := r.Accept(d.ID(), review.Seen{}, nil); !errors.Is(err, review.ErrFileChanged) {
		t.Errorf("over a change that nobody has seen: %v", err)
	}
	now := d.Now()
	if now.Text != newText || now.Conflict == nil {
		t.Errorf("%+v", now)
	}
	if err := r.Accept(d.ID(), now.Seen, nil); !errors.Is(err, review.ErrConflict) {
		t.Error(err)
	}
	if err := r.Resolve(d.ID(), now.Seen, true); err == nil {
		t.Error("the file's text was taken")
	}
	if err := r.Resolve(d.ID(), now.Seen, false); err != nil {
		t.Error(err)
	}
	if err := r.Accept(d.ID(), d.Now().Seen, nil); err != nil {
		t.Error(err)
	}
	if o, _ := d.Outcome(); o.Edited || o.Content != newText {
		t.Errorf("%+v", o)
	}
}
