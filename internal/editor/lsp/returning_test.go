package lsp_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// A lateView lets nobody show anything before it is open.
type lateView struct {
	review.View
	open chan struct{}
}

func (v lateView) Show(ctx context.Context, d *review.Diff) error {
	<-v.open
	return v.View.Show(ctx, d)
}

// A returning is an editor that still shows one diff, kept, at a pollux that has just been started again and has not brought it back.
type returning struct {
	*editor
	owner *reviewtest.Owner
	show  chan struct{} // closed: views are shown
	whole chan struct{} // closed: everything is back
}

func newReturning(t *testing.T, version int) *returning {
	t.Helper()
	return newReturningWith(t, version, obj{})
}

// newReturningWith has the editor say more of what it announces.
func newReturningWith(t *testing.T, version int, more obj) *returning {
	t.Helper()
	kept := obj{"diffId": "kept", "filePath": "/p/a", "content": "what the editor has"}
	maps.Copy(kept, more)
	r := &returning{owner: &reviewtest.Owner{Name: "a"}, show: make(chan struct{}), whole: make(chan struct{})}
	r.editor = start(t, rpc.Lines, func(view review.View) *review.Registry { return newRegistry(lateView{view, r.show}) })
	r.editor.whole = func() { <-r.whole }
	r.typesUnsaidIn("kept", "what the editor has")
	r.hello(obj{"version": version, "openDiffs": []obj{kept}})
	return r
}

func (e *editor) typesUnsaidIn(id, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.texts[id] = text
}

// back brings the diff back, as the journal had it.
func (r *returning) back() *review.Diff {
	r.t.Helper()
	d, err := r.reg.Restore(r.owner, "kept", "what the journal has", nil, time.Now(), proposal("/p/a"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.owner.Deliver(d)
	return d
}

// rest shows it, and says that there is no more to come.
func (r *returning) rest() { close(r.show); close(r.whole) }

func (r *returning) holds(text string) {
	r.t.Helper()
	r.until("the text "+text, func() bool {
		d, ok := r.reg.Get("kept")
		if !ok {
			return false
		}
		now, _ := d.Text()
		return now == text
	})
}

// SPEC L-3, F-3: what the user decides in an editor while pollux is just coming back is decided, once it is back.
func TestDecidesWhileItComesBack(t *testing.T) {
	for name, outcome := range map[string]review.Kind{"accepted": review.Accepted, "rejected": review.Rejected} {
		t.Run(name, func(t *testing.T) {
			r := newReturning(t, 2)
			answered := make(chan error, 1)
			go func() {
				_, err := r.try("pollux/resolveDiff", obj{"diffId": "kept", "version": 1, "baseVersion": 0, "outcome": name, "content": "final"})
				answered <- err
			}()
			d := r.back()
			select {
			case err := <-answered:
				t.Fatalf("answered before anything was decided: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			r.rest()
			if err := <-answered; err != nil {
				t.Fatal(err)
			}
			r.owner.ExpectTold(t, outcome)
			if o, _ := d.Outcome(); outcome == review.Accepted && o.Content != "final" {
				t.Errorf("accepted with %q", o.Content)
			}
		})
	}
	t.Run("version 1", func(t *testing.T) {
		r := newReturning(t, 1)
		r.peer.Notify("pollux/diffResolved", obj{"diffId": "kept", "outcome": "accepted", "content": "final"})
		r.back()
		r.rest()
		r.owner.ExpectTold(t, review.Accepted)
	})
}

// SPEC L-3: what the user types meanwhile counts, and not what the editor had when it said hello.
func TestTypesWhileItComesBack(t *testing.T) {
	r := newReturning(t, 2)
	r.typesUnsaidIn("kept", "typed meanwhile")
	r.peer.Notify("pollux/didChangeDiff", obj{"diffId": "kept", "version": 1, "from": 1, "content": "typed meanwhile"})
	r.drain()
	d := r.back()
	r.rest()
	r.holds("typed meanwhile")
	r.peer.Notify("pollux/didChangeDiff", obj{"diffId": "kept", "version": 2, "from": 1, "content": "and more"})
	r.holds("and more")
	if _, err := r.try("pollux/resolveDiff", obj{"diffId": "kept", "version": 1, "baseVersion": 0, "outcome": "accepted"}); err != nil {
		t.Fatal(err)
	}
	r.owner.ExpectTold(t, review.Accepted)
	if o, _ := d.Outcome(); o.Content != "and more" {
		t.Errorf("accepted with %q", o.Content)
	}
	if r.last("pollux/didChangeProposal") != nil || r.last("pollux/openDiff") != nil {
		t.Error("the editor is told what it said itself")
	}
}

// SPEC F-9: the view of one that its agent takes back meanwhile goes.
func TestTakenBackWhileItComesBack(t *testing.T) {
	r := newReturning(t, 2)
	r.back()
	if _, err := r.reg.Withdraw(t.Context(), r.owner, proposal("/p/a").Key); err != nil {
		t.Error(err)
	}
	r.rest()
	r.shown(0)
	r.drain()
	if r.last("pollux/openDiff") != nil {
		t.Error("opened again")
	}
}

// SPEC F-9: one whose session ends meanwhile is closed in the editor as well.
func TestEndsWhileItComesBack(t *testing.T) {
	r := newReturning(t, 2)
	r.back()
	r.reg.Leave(r.owner)
	r.rest()
	r.shown(0)
}

// SPEC L-3: a journal that takes long to read is no reason to close what the editor shows.
func TestComesBackLate(t *testing.T) {
	r := newReturning(t, 2)
	r.drain()
	if r.last("pollux/closeDiff") != nil {
		t.Fatal("closed as unknown before everything was back")
	}
	close(r.show)
	r.back()
	close(r.whole)
	r.holds("what the editor has")
	if r.last("pollux/closeDiff") != nil {
		t.Error("closed")
	}
}

// One that never comes back is closed when everything is back, and a decision that waited for it is answered.
func TestNeverComesBack(t *testing.T) {
	r := newReturning(t, 2)
	answered := make(chan error, 1)
	go func() {
		_, err := r.try("pollux/resolveDiff", obj{"diffId": "kept", "version": 1, "baseVersion": 0, "outcome": "accepted", "content": "final"})
		answered <- err
	}()
	r.rest()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	r.shown(0)
}

// SPEC L-3, F-12: a rejection that a killed pollux has not answered counts, with what the user had made of the text. The editor hears
// when it need not keep it any more.
func TestRejectedBeforeItComesBack(t *testing.T) {
	t.Run("comes back", func(t *testing.T) {
		r := newReturningWith(t, 2, obj{"outcome": "rejected"})
		d := r.back()
		r.rest()
		r.owner.ExpectTold(t, review.Rejected)
		if text, _ := d.Text(); text != "what the editor has" {
			t.Errorf("rejected with %q", text)
		}
		r.shown(0)
		if r.last("pollux/openDiff") != nil {
			t.Error("opened again")
		}
	})
	t.Run("never", func(t *testing.T) {
		r := newReturningWith(t, 2, obj{"outcome": "rejected"})
		r.rest()
		r.shown(0)
		r.drain()
		if said := r.last("window/showMessage"); said != nil {
			t.Errorf("the user is told %s", said)
		}
	})
}

// SPEC L-3: a decision on a diff that is coming back holds up nothing else, and what the user types after it comes after it.
func TestDecisionHoldsUpNothing(t *testing.T) {
	r := newReturning(t, 2)
	answered := make(chan error, 1)
	go func() {
		_, err := r.try("pollux/resolveDiff", obj{"diffId": "kept", "version": 1, "baseVersion": 0, "outcome": "accepted", "content": "final", "edit": 1})
		answered <- err
	}()
	r.until("an answer behind the decision", func() bool {
		_, err := r.try("pollux/unknown", nil)
		var refused *rpc.Error
		return errors.As(err, &refused) && refused.Code == rpc.CodeNoMethod
	})
	r.peer.Notify("pollux/didChangeDiff", obj{"diffId": "kept", "version": 2, "from": 1, "content": "too late"})
	r.drain()
	d := r.back()
	r.rest()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	r.owner.ExpectTold(t, review.Accepted)
	if o, _ := d.Outcome(); o.Content != "final" {
		t.Errorf("accepted with %q", o.Content)
	}
}

// SPEC L-3, L-4: an editor that says what it has and leaves at once has said it: what it leaves knows that text.
func TestLeavesWhileItComesBack(t *testing.T) {
	r := newReturning(t, 2)
	d := r.back()
	left := make(chan error, 1)
	go func() { _, err := r.try("shutdown", nil); left <- err }()
	time.Sleep(20 * time.Millisecond)
	if r.comp.stops() > 0 {
		t.Error("the companion has left before the diff was back")
	}
	r.rest()
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if text, _ := d.Text(); text != "what the editor has" {
		t.Errorf("left with %q", text)
	}
	t.Run("never", func(t *testing.T) {
		r := newReturning(t, 2)
		if _, err := r.try("shutdown", nil); err != nil || r.comp.stops() != 1 {
			t.Errorf("%v, %d stops", err, r.comp.stops())
		}
		r.rest()
	})
}

// SPEC F-12: what the user has made of a proposal that does not come back is in the history; what they have not touched is not.
func TestUnknownTextIsKept(t *testing.T) {
	r := newReturningWith(t, 2, obj{"shown": "what it was told", "oldText": "before"})
	r.rest()
	select {
	case e := <-r.kept:
		if e.Path != "/p/a" || e.Old != "before" || e.New != "what it was told" || e.Final != "what the editor has" || e.Outcome != review.Withdrawn || !e.Edited {
			t.Errorf("kept %+v", e)
		}
	case <-time.After(patience):
		t.Error("lost")
	}
	r = newReturningWith(t, 2, obj{"shown": "what the editor has"})
	r.rest()
	r.shown(0)
	if len(r.kept) > 0 {
		t.Errorf("kept %+v", <-r.kept)
	}
}
