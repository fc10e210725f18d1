package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/proc"
)

// reviewed is the part of the fake companion that reviewers see. Its channels let a test see what waits.
type reviewed struct {
	queue    Queue
	attached chan int // +1 and -1
	edits    []string
	rules    []review.Rule
	undone   []string
	proposed chan Proposal
	answer   chan Answer
	gone     chan struct{} // closed when a proposer has gone
	texts    Texts
	shut     bool
}

func newReviewed() *reviewed {
	return &reviewed{
		attached: make(chan int, 8), proposed: make(chan Proposal, 1), answer: make(chan Answer), gone: make(chan struct{}),
	}
}

func (f *reviewed) Attach() func() {
	f.attached <- 1
	return func() { f.attached <- -1 }
}

func (f *reviewed) Watch(ctx context.Context, seen uint64) Queue {
	if seen == f.queue.Version {
		<-ctx.Done()
	}
	return f.queue
}
func (f *reviewed) Texts(string) (Texts, error)      { return f.texts, nil }
func (f *reviewed) Text(string) (string, int, error) { return f.texts.Final, 7, nil }
func (f *reviewed) Edit(id, text string, from *int) (int, error) {
	f.edits = append(f.edits, id+": "+text)
	return *from + 1, nil
}

func (f *reviewed) Resolve(id string, seen Seen, theirs bool) error {
	f.edits = append(f.edits, fmt.Sprint(id, seen, theirs))
	return nil
}
func (f *reviewed) SetRule(r review.Rule, _ int) { f.rules = append(f.rules, r) }
func (f *reviewed) History() ([]PastProposal, error) {
	return []PastProposal{{ID: "h", Path: "/p", Outcome: "accepted"}}, nil
}
func (f *reviewed) PastTexts(string) (Texts, error)     { return f.texts, nil }
func (f *reviewed) Undo(id string) error                { f.undone = append(f.undone, id); return nil }
func (f *reviewed) Told(context.Context, string) string { return `{"workspaceState":{}}` }

func (f *reviewed) Propose(ctx context.Context, p Proposal, opened func(TakeBack)) (Answer, error) {
	if f.shut {
		return Answer{}, review.ErrShut
	}
	opened(func(context.Context) (string, error) { return "as " + p.New + " was edited", nil })
	f.proposed <- p
	select {
	case a := <-f.answer:
		return a, nil
	case <-ctx.Done():
		close(f.gone)
		return Answer{}, ctx.Err()
	}
}

// joined is a client of a companion of the test's own.
func joined(t *testing.T, f *fake) *Client {
	t.Helper()
	s := listen(t, []string{shortDir(t)}, f)
	f.socket = s.Path()
	c, err := Dial(t.Context(), s.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Who asked a companion that is ending hears what to do, whether it could still say so or not.
func TestProposeShut(t *testing.T) {
	f := &fake{reviewed: newReviewed()}
	f.shut = true
	c := joined(t, f)
	if _, err := c.Propose(t.Context(), Proposal{Path: "/a", New: "b"}, nil); !errors.Is(err, ErrStopped) {
		t.Errorf("%v, want %v", err, ErrStopped)
	}
	if text, err := c.TakeBack(t.Context()); err == nil {
		t.Errorf("%q is taken back of no proposal", text)
	}
}

// within fails the test when nothing comes.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// SPEC §11.1: what a reviewer asks, there and back, with every byte of the texts (F-6).
func TestReviewing(t *testing.T) {
	odd := "\ufeffa\r\nb\rc\x00\x1b[31m<&>\u2028 ä\n"
	f := &fake{reviewed: newReviewed()}
	f.texts = Texts{Old: odd, New: odd + "x", Final: odd + "y"}
	f.queue = Queue{
		Version: 3, Diffs: []Diff{{ID: "d", Version: 2, Unsaved: true}}, Rules: []review.Rule{{Mode: review.AcceptAll, Pattern: "/a"}},
		Sessions: 2, Past: 4, Ended: []Ended{{ID: "e", Outcome: "accepted"}},
	}
	c, ctx := joined(t, f), t.Context()
	check := func(what string, want, got any, err error) {
		t.Helper()
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", what, err, diff)
		}
	}
	queue, err := c.Watch(ctx, 0)
	check("watch", f.queue, queue, err)
	texts, err := c.Texts(ctx, "d")
	check("texts", f.texts, texts, err)
	text, version, err := c.Text(ctx, "d")
	check("text", f.texts.Final, text, err)
	check("its version", 7, version, nil)
	from := 2
	edited, err := c.Edit(ctx, "d", odd, &from)
	check("edit", 3, edited, err)
	check("resolve", nil, nil, c.Resolve(ctx, "d", Seen{1, 2}, true))
	check("edited", []string{"d: " + odd, "d{1 2} true"}, f.edits, nil)
	rule := review.Rule{Mode: review.Terminal, Owner: "o", Pattern: "/p/**"}
	check("rule", nil, nil, c.SetRule(ctx, rule))
	check("rules", []review.Rule{rule}, f.rules, nil)
	if err := c.SetRule(ctx, review.Rule{Mode: "yes"}); err == nil || err.Error() != errMode.Error() {
		t.Errorf("a rule of no mode: %v", err)
	}
	list, err := c.History(ctx)
	check("history", []PastProposal{{ID: "h", Path: "/p", Outcome: "accepted"}}, list, err)
	f.texts.Final = f.texts.New
	texts, err = c.PastTexts(ctx, "h")
	check("entry", f.texts, texts, err)
	check("undo", nil, nil, c.Undo(ctx, "h"))
	check("undone", []string{"h"}, f.undone, nil)
	check("decide", nil, nil, c.Decide(ctx, Decision{ID: "d", Accept: true, Content: &odd, Seen: Seen{1, 2}}))
	check("decided", []Decision{{ID: "d", Accept: true, Content: &odd, Seen: Seen{1, 2}}}, f.decided, nil)
	told, err := c.Told(ctx, "")
	check("told", `{"workspaceState":{}}`, string(told), err)
}

// Two texts of the largest size fit through, whatever JSON would make of their bytes.
func TestLargestTexts(t *testing.T) {
	pace.NotRaced(t, "the same code as with small texts, and half a minute of it")
	t.Parallel()
	big := strings.Repeat("<\x01", 8<<20) // 16 MiB, and 96 MiB as JSON strings
	f := &fake{reviewed: newReviewed()}
	c := joined(t, f)
	go func() { p := <-f.proposed; f.answer <- Answer{Accepted: p.Old == big && p.New == big} }()
	if a, err := c.Propose(t.Context(), Proposal{Path: "/p", Old: big, New: big}, nil); err != nil || !a.Accepted {
		t.Errorf("propose: %v, %v", err, a.Accepted)
	}
}

// A keeper says with a proposal which agents it knows, and nobody else does: they count as agents then.
func TestProposeWithAgents(t *testing.T) {
	f := &fake{reviewed: newReviewed()}
	c := joined(t, f)
	agents := Agents{Processes: []proc.Info{{PID: 7, Start: 8}}, Unknown: []string{"Gemini CLI #2"}}
	for session, want := range map[string]Agents{"Claude Code #1": agents, "": {}} {
		got := make(chan Agents, 1)
		go func() { p := <-f.proposed; got <- p.Agents; f.answer <- Answer{} }()
		if _, err := c.Propose(t.Context(), Proposal{Path: "/p", For: session, Agents: agents}, nil); err != nil {
			t.Fatal(err)
		}
		if got := <-got; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", session, got, want)
		}
	}
}

// A reviewer that goes, however, does not count as looking any more.
func TestAttach(t *testing.T) {
	f := &fake{reviewed: newReviewed()}
	c := joined(t, f)
	for range 2 { // the second one changes nothing
		if err := c.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	sum := 0
	for range 4 {
		sum += within(t, "the reviewer's going", f.attached)
	}
	if sum != 0 {
		t.Errorf("%d are still attached", sum)
	}
}

// A proposal lives as long as who made it (issue: cancellation and a dying client withdraw the diff).
func TestProposeWithdrawn(t *testing.T) {
	for name, end := range map[string]func(*Client, context.CancelFunc){
		"cancelled": func(_ *Client, cancel context.CancelFunc) { cancel() },
		"dead":      func(c *Client, _ context.CancelFunc) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{reviewed: newReviewed()}
			c := joined(t, f)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			opened, ended := make(chan struct{}, 1), make(chan error, 1)
			go func() {
				_, err := c.Propose(ctx, Proposal{Path: "/p", New: "x"}, func() { opened <- struct{}{} })
				ended <- err
			}()
			within(t, "the view", opened)
			if text, err := c.TakeBack(t.Context()); text != "as x was edited" || err != nil {
				t.Errorf("taken back: %q, %v", text, err)
			}
			end(c, cancel)
			within(t, "the withdrawal", f.gone)
			if err := within(t, "the end", ended); err == nil {
				t.Error("a proposal without an outcome has no error")
			}
		})
	}
}

// A model's shell may ask, and look, but decides nothing: neither by its parents nor by its environment.
func TestAgentDecidesNothing(t *testing.T) {
	unknown := func(t *testing.T, f *fake) { f.unknown = []string{"Gemini CLI #1"} }
	type setting struct {
		set  func(*testing.T, *fake)
		says string
	}
	cases := map[string]setting{
		"the agent":                           {func(_ *testing.T, f *fake) { f.agent = os.Getpid() }, ErrFromAgent.Error()},
		"below the agent":                     {func(_ *testing.T, f *fake) { f.agent = os.Getppid() }, ErrFromAgent.Error()},
		"an agent of no known process":        {unknown, ErrUnknownAgent.Error() + " (Gemini CLI #1), so only the editor and a page"},
		"below one agent, another is unknown": {func(t *testing.T, f *fake) { f.agent = os.Getpid(); unknown(t, f) }, ErrFromAgent.Error()},
	}
	for _, m := range guard.Marks() {
		cases["in the shell of "+m.Agent+", by "+m.Name] = setting{func(t *testing.T, _ *fake) { t.Setenv(m.Name, cmp.Or(m.Value, "x")) }, ErrFromAgent.Error()}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fake{reviewed: newReviewed()}
			tt.set(t, f)
			c, ctx := joined(t, f), t.Context()
			_, pageErr := c.Page(ctx)
			_, mentionErr := c.Mention(ctx, Mention{Path: "/p"})
			for what, err := range map[string]error{
				"attach": c.Attach(ctx), "edit": second(c.Edit(ctx, "d", "x", nil)), "resolve": c.Resolve(ctx, "d", Seen{}, false), "rule": c.SetRule(ctx, review.Rule{Mode: review.AcceptAll}),
				"undo": c.Undo(ctx, "h"), "accept": c.Decide(ctx, Decision{ID: "d", Accept: true}), "reject": c.Decide(ctx, Decision{ID: "d"}),
				"page": pageErr, "resume": c.Pause(ctx, false), "share": c.Share(ctx, "claude", "always"), "share after a question": c.Share(ctx, "claude", "ask"), "mention": mentionErr, "save": c.Save(ctx, "/p"), "consent": MayDecide(ctx, []string{filepath.Dir(f.socket)}),
			} {
				if err == nil || !strings.HasPrefix(err.Error(), tt.says) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := c.Pause(ctx, true); err != nil || !slices.Equal(f.paused, []bool{true}) {
				t.Errorf("pause: %v, %v", f.paused, err)
			}
			if err := c.Share(ctx, "claude", "never"); err != nil || !slices.Equal(f.shared, []string{"claude never"}) {
				t.Errorf("never: %v, %v", f.shared, err)
			}
			if snap, err := c.Context(ctx); err != nil || snap.Active == "" { // every agent may be told
				t.Errorf("%+v, %v", snap, err)
			}
			f.withheld = []string{"codex"} // it may be the one that asks
			if snap, err := c.Context(ctx); err == nil || snap != nil && snap.Active != "" {
				t.Errorf("a shell is told %+v", snap)
			}
			if told, err := c.Told(ctx, ""); err == nil {
				t.Errorf("a shell is told %s", told)
			}
			if f.mentions+len(f.saved)+len(f.edits)+len(f.rules)+len(f.undone)+len(f.decided)+len(f.attached) > 0 {
				t.Error("something was done all the same")
			}
			if _, err := c.Propose(ctx, Proposal{Path: "/p", For: "Claude Code #1"}, nil); err == nil || !strings.HasPrefix(err.Error(), tt.says) {
				t.Errorf("propose as another agent: %v", err)
			}
			go func() { <-f.proposed; f.answer <- Answer{} }()
			if _, err := c.Propose(ctx, Proposal{Path: "/p"}, nil); err != nil {
				t.Errorf("propose: %v", err)
			}
		})
	}
}

// A question that waits does not keep others from being answered, and ends by itself.
func TestWatchWaits(t *testing.T) {
	t.Parallel()
	f := &fake{reviewed: newReviewed()}
	f.queue.Version = 5
	c := joined(t, f)
	ended := make(chan error, 1)
	go func() { _, err := c.Watch(t.Context(), 5); ended <- err }()
	for range 20 {
		if _, err := c.Sessions(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := within(t, "the watch's end", ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func second(_ int, err error) error { return err }
