package reviewtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/pace"
)

// A Subject is a view under test, with an editor attached that can show diffs.
type Subject struct {
	View review.View
	// Edit, Accept and Reject do what a user does at the view, and return when it is done
	// or on its way; nil where the editor cannot be driven so. The text of an edit has line
	// feeds only, as an editor's buffer has; the registry must get the proposal's own line
	// endings (SPEC F-6).
	Edit   func(d *review.Diff, text string)
	Accept func(d *review.Diff)
	Reject func(d *review.Diff)
}

// Suite runs what every review.View must do (SPEC F-2…F-10). open makes a
// fresh subject for each test, whose user's decisions go to the registry.
func Suite(t *testing.T, open func(t *testing.T, r *review.Registry) Subject) {
	for name, test := range map[string]func(t *testing.T, b *bench){
		"texts come back byte for byte": textsComeBack,
		"accept":                        accept, "reject": reject, "edit and accept": editAndAccept, "edit and withdraw": editAndWithdraw,
		"several at once": severalAtOnce, "replaced": replaced, "the owner leaves": ownerLeaves, "shut": shut,
		"ends quickly": endsQuickly, "all at once": allAtOnce, "cancelled while being shown": cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			later := &laterView{}
			r := review.New(review.Options{View: later, ShowTimeout: patience, ContentTimeout: patience})
			b := &bench{Subject: open(t, r), r: r, owner: &Owner{Name: "Gemini CLI #1"}}
			later.View = b.View
			t.Cleanup(r.Shut)
			test(t, b)
		})
	}
}

// A laterView gets its view only after its registry is made.
type laterView struct{ review.View }

// A bench is one test's subject with a registry and a session.
type bench struct {
	Subject
	r     *review.Registry
	owner *Owner
}

// texts are texts that views have handled wrongly before.
func texts() map[string]string {
	return map[string]string{
		"empty": "", "no final newline": "a\nb", "LF": "a\nb\n", "CR LF": "a\r\nb\r\n", "CR": "a\rb\r", "mixed": "a\r\nb\nc\rd",
		"byte order mark": "\ufeffa\r\nb\n", "only line ends": "\r\n\n\r", "Unicode": "e\u0301 👩‍👩‍👧 \u2028 \u0085 \U0010ffff\n",
		"looks like JSON": `{"content": "hijack"}`, "long line": strings.Repeat("x", 1<<20), "5 MB": strings.Repeat("fifty bytes of source code, as many files hold it\n", 100_000),
	}
}

func textsComeBack(t *testing.T, b *bench) {
	for name, text := range texts() {
		t.Run(name, func(t *testing.T) {
			b.owner.Propose(t, b.r, "/w/"+name, "old\n", text)
			o, err := b.r.Withdraw(context.Background(), b.owner, "/w/"+name)
			if err != nil {
				t.Fatal(err)
			}
			if o.Content != text || o.Edited {
				t.Errorf("%.60q came back as %.60q, edited %v", text, o.Content, o.Edited)
			}
		})
	}
}

func accept(t *testing.T, b *bench) {
	need(t, b.Accept != nil)
	b.Accept(b.owner.Propose(t, b.r, "/w/a", "old", "new\r\n"))
	if o := b.owner.ExpectTold(t, review.Accepted)[0].Outcome; o.Content != "new\r\n" || o.Edited {
		t.Errorf("the outcome is %+v", o)
	}
}

func reject(t *testing.T, b *bench) {
	need(t, b.Reject != nil)
	b.Reject(b.owner.Propose(t, b.r, "/w/a", "", "new\n"))
	b.owner.ExpectTold(t, review.Rejected)
}

func editAndAccept(t *testing.T, b *bench) {
	need(t, b.Edit != nil && b.Accept != nil)
	d := b.owner.Propose(t, b.r, "/w/a", "old", "one\r\ntwo\r\n")
	b.Edit(d, "one\nTWO\n")
	b.Accept(d)
	if o := b.owner.ExpectTold(t, review.Accepted)[0].Outcome; o.Content != "one\r\nTWO\r\n" || !o.Edited {
		t.Errorf("the outcome is %+v", o)
	}
}

// SPEC F-4: what the user typed last is in the answer.
func editAndWithdraw(t *testing.T, b *bench) {
	need(t, b.Edit != nil)
	d := b.owner.Propose(t, b.r, "/w/a", "old", "one\r\ntwo")
	b.Edit(d, "one\nTWO")
	eventually(t, func() string {
		if got, _ := d.Text(); got != "one\r\nTWO" {
			return "the registry does not hear of the edit"
		}
		return ""
	})
	if o, err := b.r.Withdraw(context.Background(), b.owner, "/w/a"); err != nil || o.Content != "one\r\nTWO" || !o.Edited {
		t.Errorf("the outcome is %+v, %v", o, err)
	}
}

func severalAtOnce(t *testing.T, b *bench) {
	need(t, b.Accept != nil && b.Reject != nil)
	other := &Owner{Name: "Gemini CLI #2"}
	first, second := b.owner.Propose(t, b.r, "/w/a", "old", "mine"), other.Propose(t, b.r, "/w/a", "old", "yours")
	third := b.owner.Propose(t, b.r, "/w/c", "old", "third")
	b.Reject(second)
	b.Accept(third)
	b.Accept(first)
	other.ExpectTold(t, review.Rejected)
	if told := b.owner.ExpectTold(t, review.Accepted, review.Accepted); told[0].Key == told[1].Key {
		t.Errorf("told %v", told)
	}
}

func replaced(t *testing.T, b *bench) {
	b.owner.Propose(t, b.r, "/w/a", "old", "first")
	d := b.owner.Propose(t, b.r, "/w/a", "old", "second")
	if pending := b.r.Pending(); len(pending) != 1 || pending[0] != d {
		t.Errorf("%d diffs are open", len(pending))
	}
	if o, err := b.r.Withdraw(context.Background(), b.owner, "/w/a"); err != nil || o.Content != "second" {
		t.Errorf("the outcome is %+v, %v", o, err)
	}
}

func ownerLeaves(t *testing.T, b *bench) {
	d := b.owner.Propose(t, b.r, "/w/a", "old", "new")
	b.r.Leave(b.owner)
	if err := b.r.Accept(d.ID(), d.Now().Seen, nil); !errors.Is(err, review.ErrSettled) {
		t.Errorf("accepting a diff whose session has gone: %v", err)
	}
	b.owner.ExpectTold(t)
}

func shut(t *testing.T, b *bench) {
	b.owner.Propose(t, b.r, "/w/a", "old", "new")
	b.owner.Propose(t, b.r, "/w/b", "", "new")
	b.r.Shut()
	b.owner.ExpectTold(t, review.Rejected, review.Rejected)
}

// Close must not block, and Content must heed its deadline, also for a diff that the
// view does not show any more.
func endsQuickly(t *testing.T, b *bench) {
	d := b.owner.Propose(t, b.r, "/w/a", "old", "new")
	watch := pace.Start(t)
	if err := b.r.Reject(d.ID()); err != nil {
		t.Fatal(err)
	}
	b.View.Close(d, review.Outcome{Kind: review.Rejected}) // an editor may have closed it itself
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if newest, ok := b.View.Content(ctx, d); ok && newest.Text != "new" {
		t.Errorf("a closed diff has the text %q", newest.Text)
	}
	if d := watch.Took(); d > 2*time.Second {
		t.Errorf("that took %v", d)
	}
}

func allAtOnce(t *testing.T, b *bench) {
	var wg sync.WaitGroup
	for _, name := range strings.Split("abcdefghijklmnop", "") {
		wg.Go(func() {
			owner := &Owner{Name: name}
			d := owner.Propose(t, b.r, "/w/"+name, "old", "new "+name)
			switch name[0] % 3 {
			case 0:
				if o, err := b.r.Withdraw(context.Background(), owner, "/w/"+name); err != nil || o.Content != "new "+name {
					t.Errorf("%s: %+v, %v", name, o, err)
				}
			case 1:
				if err := b.r.Accept(d.ID(), d.Now().Seen, nil); err != nil {
					t.Error(err)
				}
				owner.ExpectTold(t, review.Accepted)
			default:
				b.r.Leave(owner)
			}
		})
	}
	wg.Wait()
	if n := len(b.r.Pending()); n != 0 {
		t.Errorf("%d diffs are still open", n)
	}
}

func cancelled(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := b.owner.Propose(t, b.r, "/w/a", "old", "new")
	done := make(chan error, 1)
	go func() { done <- b.View.Show(ctx, d) }()
	select {
	case <-done: // either answer is right
	case <-time.After(patience):
		t.Error("Show does not heed its context")
	}
}

// need skips a test for a subject that cannot be driven that way.
func need(t *testing.T, can bool) {
	t.Helper()
	if !can {
		t.Skip("this editor cannot be driven so")
	}
}
