package companion

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// within is how long what must happen may take on a busy machine.
const within = 30 * time.Second

// join is another pollux process of the user's.
func join(t *testing.T, o Options, folder string) *control.Client {
	t.Helper()
	c, err := control.Find(t.Context(), o.Dirs.Run, folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// An asked question is one call of Propose.
type asked struct {
	answer chan control.Answer
	failed chan error
	opened chan struct{}
	cancel context.CancelFunc
}

func propose(t *testing.T, c *control.Client, p control.Proposal) *asked {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	q := &asked{make(chan control.Answer, 1), make(chan error, 1), make(chan struct{}), cancel}
	go func() {
		a, err := c.Propose(ctx, p, func() { close(q.opened) })
		if err != nil {
			q.failed <- err
			return
		}
		q.answer <- a
	}()
	return q
}

// open waits until the view is there.
func (q *asked) open(t *testing.T) {
	t.Helper()
	select {
	case <-q.opened:
	case err := <-q.failed:
		t.Fatal(err)
	case <-time.After(within):
		t.Fatal("the proposal does not open")
	}
}

func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(within):
		t.Fatalf("%s does not come", what)
	}
	return v
}

// until watches until the queue fits.
func until(t *testing.T, c *control.Client, what string, fits func(control.Queue) bool) control.Queue {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for seen := uint64(0); ; {
		q, err := c.Watch(ctx, seen)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if fits(q) {
			return q
		}
		seen = q.Version
	}
}

func one(q control.Queue) bool  { return len(q.Diffs) == 1 }
func none(q control.Queue) bool { return len(q.Diffs) == 0 }

// A reviewer alone is a view; it edits, accepts, and undoes (SPEC F-5, F-12).
func TestReviewerAlone(t *testing.T) {
	o, a, _ := options(t)
	start(t, o)
	file := filepath.Join(a, "a.txt")
	if err := os.WriteFile(file, []byte("one\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	reviewer, asker, ctx := join(t, o, a), join(t, o, a), t.Context()
	p := control.Proposal{Path: file, Old: "one\n", New: "one\ntwo\n"}
	if err := await(t, "a refusal", propose(t, asker, p).failed); !strings.Contains(err.Error(), "no editor page is open") {
		t.Errorf("with nobody to look: %v", err)
	}
	if v := asker.Status.Views; v == nil || v.Any() {
		t.Errorf("with nobody to look, diffs are said to be shown: %+v", v)
	}
	if err := reviewer.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	if v := join(t, o, a).Status.Views; v == nil || *v != (control.Views{Reviewer: true}) {
		t.Errorf("a reviewer is attached: %+v", v)
	}
	q := propose(t, asker, p)
	q.open(t)
	queue := until(t, reviewer, "the proposal", one)
	d := queue.Diffs[0]
	if d.Path != file || d.Edited || d.IsNew || !strings.HasPrefix(d.Owner, "pollux diff #") {
		t.Errorf("%+v", d)
	}
	if texts, err := reviewer.Texts(ctx, d.ID); err != nil || texts.Old != p.Old || texts.New != p.New {
		t.Errorf("%+v, %v", texts, err)
	}
	version, err := reviewer.Edit(ctx, d.ID, "one\n2\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	until(t, reviewer, "the edit", func(q control.Queue) bool { return one(q) && q.Diffs[0].Edited && q.Diffs[0].Version > d.Version })
	if err := reviewer.Decide(ctx, control.Decision{ID: d.ID, Accept: true, Seen: control.Seen{Version: version}}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "the answer", q.answer); got != (control.Answer{Accepted: true, Content: "one\n2\n", Edited: true}) {
		t.Errorf("%+v", got)
	}
	until(t, reviewer, "the history's entry", func(q control.Queue) bool {
		return none(q) && q.Past > 0 && len(q.Ended) > 0 && q.Ended[len(q.Ended)-1] == control.Ended{ID: d.ID, Outcome: "accepted"}
	})
	entries, err := reviewer.History(ctx)
	if err != nil || len(entries) == 0 || entries[0].ID != d.ID || !entries[0].Undoable || !entries[0].Edited {
		t.Fatalf("%+v, %v", entries, err)
	}
	if err := reviewer.Undo(ctx, d.ID); err == nil || strings.Contains(err.Error(), "panic") {
		t.Errorf("undone though the file holds something else: %v", err)
	}
	if err := os.WriteFile(file, []byte("one\n2\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := reviewer.Undo(ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(file); string(data) != "one\n" {
		t.Errorf("after undoing the file holds %q", data)
	}
	if entries, err := reviewer.History(ctx); err != nil || !entries[0].Undone {
		t.Errorf("undone: %+v, %v", entries, err)
	}
	if err := reviewer.Undo(ctx, d.ID); err == nil || !strings.Contains(err.Error(), "has been undone already") {
		t.Errorf("undone twice: %v", err)
	}
	reviewer.Close()
	deadline := time.Now().Add(within)
	for { // its end is noticed a little later
		q := propose(t, asker, p)
		select {
		case <-q.failed:
			return
		case <-q.opened:
			q.cancel()
			asker = join(t, o, a) // cancelling has closed the connection
		}
		if time.Now().After(deadline) {
			t.Fatal("a reviewer that has gone still counts")
		}
	}
}

// Reviewer and page show the same: what one does the other sees.
func TestReviewerBesidePage(t *testing.T) {
	o, a, _ := options(t)
	c := start(t, o)
	address, err := c.PageAddress()
	if err != nil {
		t.Fatal(err)
	}
	page := webtest.Open(t, address, "page")
	reviewer, asker, ctx := join(t, o, a), join(t, o, a), t.Context()
	if err := reviewer.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	q := propose(t, asker, control.Proposal{Path: filepath.Join(a, "new.txt"), IsNew: true, New: "a\r\nb\r\n"})
	q.open(t)
	id := until(t, reviewer, "the proposal", one).Diffs[0].ID
	page.Expect("diff/opened", nil)
	page.Call("diff/read", map[string]string{"id": id}, nil)
	if _, err := reviewer.Edit(ctx, id, "a\r\nB\r\n", nil); err != nil {
		t.Fatal(err)
	}
	var note struct{ Text string }
	page.Expect("diff/text", &note)
	if note.Text != "a\nB\n" {
		t.Errorf("the page is told %q", note.Text)
	}
	if err := reviewer.SetRule(ctx, review.Rule{Mode: review.Terminal, Pattern: "/x"}); err != nil {
		t.Fatal(err)
	}
	page.Expect("rules/changed", nil)
	page.Call("policy/set", review.Rule{Mode: review.AcceptAll, Pattern: "/y"}, nil)
	until(t, reviewer, "the page's rule", func(q control.Queue) bool { return len(q.Rules) == 2 })
	page.Call("diff/accept", map[string]string{"id": id}, nil)
	if got := await(t, "the answer", q.answer); got.Content != "a\r\nB\r\n" || !got.Edited {
		t.Errorf("%+v", got)
	}
	until(t, reviewer, "the decision", none)
	page.Expect("history/changed", nil)
}

// Who asks and goes takes the question along; the companion's end is no answer.
func TestProposeEnds(t *testing.T) {
	o, a, _ := options(t)
	c := start(t, o)
	reviewer := join(t, o, a)
	if err := reviewer.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, end := range map[string]func(*asked, *control.Client){
		"cancelled": func(q *asked, _ *control.Client) { q.cancel() },
		"died":      func(_ *asked, c *control.Client) { c.Close() },
	} {
		asker := join(t, o, a)
		q := propose(t, asker, control.Proposal{Path: filepath.Join(a, what), IsNew: true, New: "x"})
		q.open(t)
		until(t, reviewer, what, one)
		end(q, asker)
		queue := until(t, reviewer, what, none)
		if n := len(queue.Ended); n == 0 || queue.Ended[n-1].Outcome != "withdrawn" {
			t.Errorf("%s: %+v", what, queue.Ended)
		}
		await(t, "an error", q.failed)
	}
	for _, bad := range []control.Proposal{{Path: "relative", New: "x"}, {Path: "/abs", Old: "a\x00b"}, {Path: "/abs", New: "\xff"}} {
		if err := await(t, "a refusal", propose(t, join(t, o, a), bad).failed); err == nil {
			t.Errorf("%+v is shown", bad)
		}
	}
	q := propose(t, join(t, o, a), control.Proposal{Path: filepath.Join(a, "x"), IsNew: true, New: "x"})
	q.open(t)
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := await(t, "an error", q.failed); !errors.Is(err, control.ErrStopped) {
		t.Errorf("the companion's end is %v", err)
	}
}

// The context that pollux context shows is the one that CLIs get.
func TestTold(t *testing.T) {
	o, a, _ := options(t)
	c := start(t, o)
	client := join(t, o, a)
	first, err := client.Told(t.Context(), "")
	if err != nil || string(first) != `{"workspaceState":{"openFiles":[]}}` {
		t.Fatalf("%s, %v", first, err)
	}
	file := filepath.Join(a, "a.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.store.Report("w", state.Report{Active: file, Open: []string{file}, Cursor: &state.Position{Line: 1, Character: 2}})
	params, err := client.Told(t.Context(), string(first))
	var got struct {
		WorkspaceState struct {
			OpenFiles []struct {
				Path   string
				Cursor struct{ Line, Character int }
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(params, &got)
	}
	if files := got.WorkspaceState.OpenFiles; err != nil || len(files) != 1 || files[0].Path != file || files[0].Cursor.Line != 2 || files[0].Cursor.Character != 3 {
		t.Errorf("%s, %v", params, err)
	}
}
