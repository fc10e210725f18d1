package web_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
)

type diffTexts struct {
	ID, Path, FilePath, Title, Owner, Old, New, Text, EOL string
	IsNew, Edited, DirtyElsewhere                         bool
	Version                                               int
	Opened                                                int64
}

// SPEC F-3, F-5, F-6: whatever its line ends, an unedited proposal comes back byte for byte, and an edited one with
// its own line ends.
func TestDiffAccept(t *testing.T) {
	b := newBench(t)
	p := b.page("a")
	for name, tc := range map[string]struct{ old, proposal, eol, page, edited, want string }{
		"lf":         {"a\n", "b\n", "lf", "b\n", "c\n", "c\n"},
		"crlf":       {"a\r\n", "b\r\nc\r\n", "crlf", "b\nc\n", "b\nx\nc\n", "b\r\nx\r\nc\r\n"},
		"mixed":      {"", "b\r\nc\nd", "mixed", "b\nc\nd", "b\nc\ne", "b\r\nc\ne"},
		"bom":        {"\ufeffa", "\ufeffb", "lf", "b", "c", "\ufeffc"},
		"no newline": {"a\n", "b", "lf", "b", "b\n", "b\n"},
		"unicode":    {"a", "ä😀\u2028é\x01<&>", "lf", "ä😀\u2028é\x01<&>", "ä😀\u2028é\x01<&>!", "ä😀\u2028é\x01<&>!"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, edit := range []bool{false, true} {
				path := filepath.Join(b.root, name)
				d := b.propose(path, tc.old, tc.proposal)
				var opened struct{ Diff diffTexts }
				p.Expect("diff/opened", &opened)
				if opened.Diff.ID != d.ID() || opened.Diff.FilePath != path || opened.Diff.Owner != "Gemini CLI #1" || opened.Diff.IsNew != (tc.old == "") || opened.Diff.Opened == 0 {
					t.Errorf("%+v", opened)
				}
				var texts diffTexts
				p.Call("diff/read", obj{"id": d.ID()}, &texts)
				if texts.New != tc.page || texts.Text != tc.page || texts.EOL != tc.eol || texts.Edited || strings.Contains(texts.Old, "\r") {
					t.Errorf("%+v", texts)
				}
				text, want := tc.page, tc.proposal
				if edit {
					text, want = tc.edited, tc.want
				}
				p.Call("diff/accept", obj{"id": d.ID(), "text": text}, nil)
				if o := b.owner.outcome(t); o.Kind != review.Accepted || o.Content != want || o.Edited != edit {
					t.Errorf("edited %v: %+v, want %q", edit, o, want)
				}
				var closed struct{ ID, Outcome, Owner string }
				p.Expect("diff/closed", &closed)
				if closed.ID != d.ID() || closed.Outcome != "accepted" || closed.Owner != "Gemini CLI #1" {
					t.Errorf("%+v", closed)
				}
				p.ExpectError(-32020, "diff/accept", obj{"id": d.ID(), "text": text})
				p.ExpectError(-32020, "diff/read", obj{"id": d.ID()})
			}
		})
	}
}

func TestDiffReject(t *testing.T) { // SPEC F-3, F-8
	b := newBench(t)
	p := b.page("a")
	d := b.propose(filepath.Join(b.root, "f"), "a", "b")
	p.ExpectError(-32021, "diff/accept", obj{"id": d.ID(), "text": ""})
	p.ExpectNone("diff/closed")
	p.Call("diff/reject", obj{"id": d.ID()}, nil)
	if o := b.owner.outcome(t); o.Kind != review.Rejected {
		t.Errorf("%+v", o)
	}
	p.ExpectError(-32020, "diff/reject", obj{"id": d.ID()})
	p.ExpectError(-32602, "diff/reject", obj{"id": 1})
}

// An update says which of the page's own edits it includes. An update that crossed an edit comes again, merged with
// the edit (SPEC F-13).
func TestUpdatesSayTheirEdit(t *testing.T) {
	b := newBench(t)
	one, two := b.page("one"), b.page("two")
	d := b.propose(filepath.Join(b.root, "f"), "a\nb\nc\n", "a\nb\nC\n")
	for _, p := range []*webtest.Page{one, two} {
		p.Call("diff/read", obj{"id": d.ID()}, nil)
	}
	var note struct {
		Text          string
		Version, Edit int
	}
	two.Notify("diff/edit", obj{"id": d.ID(), "text": "A\nb\nC\n", "version": 0, "edit": 1})
	one.Expect("diff/text", &note)
	if note.Edit != 0 || note.Text != "A\nb\nC\n" {
		t.Errorf("%+v", note)
	}
	theirs := note.Version
	// Page one typed before the update came.
	one.Notify("diff/edit", obj{"id": d.ID(), "text": "a\nb\nC!\n", "version": 0, "edit": 1})
	one.Expect("diff/text", &note)
	if note.Edit != 1 || note.Text != "A\nb\nC!\n" || note.Version <= theirs {
		t.Errorf("%+v", note)
	}
	two.Expect("diff/text", &note)
	if note.Edit != 1 || note.Text != "A\nb\nC!\n" {
		t.Errorf("%+v", note)
	}
	// Page one's next edit crossed the newest text, but keeps all of it. Page one is told again, though nothing is
	// merged.
	one.Notify("diff/edit", obj{"id": d.ID(), "text": "A\nb\nC!\n", "version": 0, "edit": 2})
	one.Expect("diff/text", &note)
	if note.Edit != 2 || note.Text != "A\nb\nC!\n" {
		t.Errorf("%+v", note)
	}
	one.Notify("diff/edit", obj{"id": d.ID(), "text": "A\nb\nC?\n", "version": note.Version, "edit": 3})
	one.ExpectNone("diff/text") // it has the newest
}

// An edit is merged against the text that its page had, however far the page is behind (SPEC F-13).
func TestPageFarBehind(t *testing.T) {
	b := newBench(t)
	one, two := b.page("one"), b.page("two")
	d := b.propose(filepath.Join(b.root, "f"), "a\nb\nc\n", "a\nb\nC\n")
	for _, p := range []*webtest.Page{one, two} {
		p.Call("diff/read", obj{"id": d.ID()}, nil)
	}
	var note, third struct {
		Text          string
		Version, Edit int
	}
	for i := range 100 {
		two.Notify("diff/edit", obj{"id": d.ID(), "text": fmt.Sprintf("a %d\nb\nC\n", i), "version": 0, "edit": i + 1})
		if one.Expect("diff/text", &note); i == 2 {
			third = note
		}
	}
	one.Notify("diff/edit", obj{"id": d.ID(), "text": third.Text + "typed\n", "version": third.Version, "edit": 1})
	one.Expect("diff/text", &note)
	if note.Edit != 1 || note.Text != "a 99\nb\nC\ntyped\n" {
		t.Errorf("%+v", note)
	}
}

// Two pages agree about an edit and about the diff's outcome, even when both edit at once.
func TestDiffTwoPages(t *testing.T) {
	b := newBench(t)
	one, two, third := b.page("one"), b.page("two"), b.page("third")
	d := b.propose(filepath.Join(b.root, "f"), "a\n", "b\r\n")
	two.Notify("context/update", obj{"focused": false, "active": nil, "open": []string{d.Proposal().Path}, "dirty": []string{d.Proposal().Path}})
	two.Call("ping", nil, nil)
	var texts diffTexts
	one.Call("diff/read", obj{"id": d.ID()}, &texts)
	if !texts.DirtyElsewhere {
		t.Error("another page's unsaved changes are not pointed out")
	}
	two.Call("diff/read", obj{"id": d.ID()}, &texts)
	if texts.DirtyElsewhere {
		t.Error("a page is warned of its own unsaved changes")
	}
	var brief diffTexts
	third.Call("diff/read", obj{"id": d.ID(), "brief": true}, &brief)
	if !brief.DirtyElsewhere || brief.Old+brief.New+brief.Text != "" {
		t.Errorf("asked in brief, a page is told %+v", brief)
	}
	var short diffTexts
	two.Call("diff/read", obj{"id": d.ID(), "short": true}, &short)
	if short.Old != "a\n" || short.New != "b" || short.Text != "" {
		t.Errorf("asked in short, a page is told %+v", short)
	}
	one.Notify("diff/edit", obj{"id": d.ID(), "text": "one\n", "clientId": "one"})
	var note struct {
		ID, Text, ClientID string
		Version            int
	}
	two.Expect("diff/text", &note)
	if note.ID != d.ID() || note.Text != "one\n" || note.ClientID != "one" || note.Version == 0 {
		t.Errorf("%+v", note)
	}
	one.ExpectNone("diff/text")
	third.ExpectNone("diff/text") // it reads the latest text later
	if text, _ := d.Text(); text != "one\r\n" {
		t.Errorf("registry: %q", text)
	}
	// Page two typed on the same line before it heard of page one's edit. Its own text comes back, so that it does
	// not keep page one's.
	two.Notify("diff/edit", obj{"id": d.ID(), "text": "two\n", "version": 0})
	two.Expect("diff/text", &note)
	if note.Text != "two\n" || note.ClientID != "" {
		t.Errorf("%+v", note)
	}
	one.Expect("diff/text", &note)
	if note.Text != "two\n" || note.ClientID != "" {
		t.Errorf("%+v", note)
	}
	two.Notify("diff/edit", obj{"id": d.ID(), "text": "two!\n"})
	two.ExpectNone("diff/text")
	var hello struct{ Diffs []diffTexts }
	third.Call("hello", obj{"clientId": "third"}, &hello)
	if len(hello.Diffs) != 1 || !hello.Diffs[0].Edited {
		t.Errorf("%+v", hello)
	}
	one.Expect("diff/text", &note)
	one.ExpectError(-32022, "diff/accept", obj{"id": d.ID(), "text": "one\n", "version": 1, "base": 0}) // SPEC F-10: page one is behind
	one.Call("diff/accept", obj{"id": d.ID()}, nil)
	if o := b.owner.outcome(t); o.Content != "two!\r\n" || !o.Edited {
		t.Errorf("%+v", o)
	}
	two.Expect("diff/closed", nil)
	third.Expect("diff/closed", nil)
}

// An edit arrives before a later message on the same connection.
func TestEditBeforeAccept(t *testing.T) {
	b := newBench(t)
	p := b.page("a")
	for range 20 {
		d := b.propose(filepath.Join(b.root, "f"), "a\n", "b\n")
		p.Call("diff/read", obj{"id": d.ID()}, nil)
		for _, s := range []string{"1\n", "2\n", "3\n"} {
			p.Notify("diff/edit", obj{"id": d.ID(), "text": s})
		}
		p.Call("diff/accept", obj{"id": d.ID()}, nil)
		if o := b.owner.outcome(t); o.Content != "3\n" {
			t.Fatalf("%+v", o)
		}
	}
}

// SPEC F-4: the last keystrokes before a decision in the terminal count, and a page that does not answer costs no
// more than the deadline.
func TestWithdrawFlushes(t *testing.T) {
	const deadline = 3 * time.Second // a silent page costs four fifths of it
	b := newBenchOf(t, review.Options{ContentTimeout: deadline})
	silent, typing := b.page("silent"), b.page("typing")
	late := "typed\n"
	typing.OnFlush(func(string) *string { return &late })
	release := make(chan struct{})
	defer close(release)
	silent.OnFlush(func(string) *string { <-release; return nil })

	withdraw := func(want string, atMost time.Duration) {
		t.Helper()
		path := filepath.Join(b.root, "f")
		d := b.propose(path, "a\r\n", "b\r\n")
		typing.Call("diff/read", obj{"id": d.ID()}, nil)
		if want != "typed\r\n" {
			typing.OnFlush(nil)
			typing.Notify("diff/edit", obj{"id": d.ID(), "text": "sent\n"})
			typing.Call("ping", nil, nil)
		}
		watch := pace.Start(t)
		o, err := b.registry.Withdraw(context.Background(), b.owner, path)
		if err != nil || o.Content != want || !o.Edited || watch.Took() > atMost {
			t.Errorf("%+v %v after %v, want %q", o, err, watch.Took(), want)
		}
		var closed struct{ Outcome string }
		typing.Expect("diff/closed", &closed)
		if closed.Outcome != "withdrawn" {
			t.Errorf("%+v", closed)
		}
	}
	withdraw("typed\r\n", deadline/2) // the silent page has not read the diff, so it is not asked
	withdraw("sent\r\n", deadline/2)

	typing.OnFlush(func(string) *string { return &late })
	path := filepath.Join(b.root, "g")
	d := b.propose(path, "a\r\n", "b\r\n")
	typing.Call("diff/read", obj{"id": d.ID()}, nil)
	silent.Call("diff/read", obj{"id": d.ID()}, nil)
	watch := pace.Start(t)
	o, err := b.registry.Withdraw(context.Background(), b.owner, path)
	if err != nil || o.Content != "typed\r\n" || watch.Took() > 2*deadline {
		t.Errorf("%+v %v after %v", o, err, watch.Took())
	}
}

func TestBigDiff(t *testing.T) { // SPEC F-5, F-6: 5 MB there and back
	pace.NotRaced(t, "the same code as with small texts, and half a minute of it")
	b := newBench(t)
	p := b.page("a")
	old := strings.Repeat("the quick brown fox <jumps> over & the \"lazy\" dog ä😀\r\n", 5<<20/58)
	proposal := "first\r\n" + old
	watch := pace.Start(t)
	d := b.propose(filepath.Join(b.root, "f"), old, proposal)
	p.Expect("diff/opened", nil)
	var texts diffTexts
	p.Call("diff/read", obj{"id": d.ID()}, &texts)
	if len(texts.New) < 4<<20 || texts.New != strings.ReplaceAll(proposal, "\r\n", "\n") {
		t.Error("the page reads another text")
	}
	p.Notify("diff/edit", obj{"id": d.ID(), "text": texts.Text + "last"})
	p.Call("diff/accept", obj{"id": d.ID(), "text": texts.Text + "last"}, nil)
	if o := b.owner.outcome(t); o.Content != proposal+"last" {
		t.Error("the agent gets another text")
	}
	t.Logf("%v for %d bytes", watch.Took(), len(proposal))
}

// A page that does not read delays neither the agent nor other pages, and is dropped.
func TestSlowPage(t *testing.T) { // SPEC A-4
	b := newBench(t)
	origin, key := webtest.Login(t, b.address())
	conn, err := webtest.Enter(origin, key)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	write := func(s string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), webtest.Patience)
		defer cancel()
		if err := conn.Write(ctx, 1, []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"jsonrpc":"2.0","id":1,"method":"hello","params":{"clientId":"slow"}}`)
	write(`{"jsonrpc":"2.0","id":2,"method":"context/update","params":{"focused":true,"active":null,"open":[],"dirty":[]}}`)
	p := b.page("honest")
	d := b.propose(filepath.Join(b.root, "f"), "", "x")
	p.Call("diff/read", obj{"id": d.ID()}, nil)
	b.eventually("both pages", func() bool { return b.server.Pages() == 2 })
	long := strings.Repeat("y", 1<<20)
	var slowest time.Duration
	for i := 0; b.server.Pages() == 2; i++ {
		if i == 200 {
			t.Fatal("200 MiB wait for a page that takes nothing")
		}
		if err := b.server.Open(long, nil, false); err != nil { // to the front page, which is the slow one
			t.Fatal(err)
		}
		watch := pace.Start(t)
		p.Notify("diff/edit", obj{"id": d.ID(), "text": strings.Repeat("z", i)})
		p.Call("ping", nil, nil)
		slowest = max(slowest, watch.Took())
	}
	if slowest > 10*time.Second { // half of the write timeout
		t.Errorf("an edit took %v beside a slow page", slowest)
	}
	t.Logf("slowest edit: %v", slowest)
	p.Call("diff/accept", obj{"id": d.ID()}, nil)
	b.owner.outcome(t)
}

func TestPolicy(t *testing.T) { // SPEC F-11
	b := newBench(t)
	one, two := b.page("one"), b.page("two")
	for _, bad := range []obj{{"mode": "yes"}, {}, {"mode": "ask", "pattern": strings.Repeat("x", 5000)}} {
		one.ExpectError(-32602, "policy/set", bad)
	}
	d := b.propose(filepath.Join(b.root, "f"), "", "x")
	var rules struct{ Rules []review.Rule }
	one.Call("policy/set", obj{"mode": "accept", "owner": b.owner.label}, &rules)
	if len(rules.Rules) != 1 || rules.Rules[0].Mode != review.AcceptAll || rules.Rules[0].Owner != b.owner.label {
		t.Errorf("%+v", rules)
	}
	two.Expect("rules/changed", &rules)
	one.Expect("diff/closed", nil)
	if o := b.owner.outcome(t); !o.Policy {
		t.Errorf("%s: %+v", d.ID(), o)
	}
}

// SPEC F-11: a diff that a rule decides is not shown: no page sees it open, and no page keeps it.
func TestRuledIsNotShown(t *testing.T) {
	b := newBench(t)
	p := b.page("one")
	p.Call("policy/set", obj{"mode": "accept", "pattern": filepath.Join(b.root, "*.md")}, nil)
	for range 3 {
		b.propose(filepath.Join(b.root, "f.md"), "", "x")
		if o := b.owner.outcome(t); !o.Policy {
			t.Errorf("%+v", o)
		}
	}
	p.ExpectNone("diff/opened")
	d := b.propose(filepath.Join(b.root, "f.txt"), "", "x") // the rule does not match it
	p.Expect("diff/opened", nil)
	p.Call("diff/accept", obj{"id": d.ID()}, nil)
	b.owner.outcome(t)
}

// anEditor is a view besides the pages.
type anEditor struct{}

func (anEditor) Show(context.Context, *review.Diff) error { return nil }
func (anEditor) Close(*review.Diff, review.Outcome)       {}
func (anEditor) Content(context.Context, *review.Diff) (review.Edit, bool) {
	return review.Edit{}, false
}

// The pages hear of a diff that another editor shows when it opens, and lose it when it is decided, though no page
// was asked to show or close it.
func TestShownElsewhere(t *testing.T) {
	b := newBenchOf(t, review.Options{View: anEditor{}})
	p := b.page("one")
	d := b.propose(filepath.Join(b.root, "f"), "", "x")
	p.Expect("diff/opened", nil)
	if err := b.registry.Reject(d.ID()); err != nil {
		t.Fatal(err)
	}
	var closed struct{ ID, Outcome string }
	p.Expect("diff/closed", &closed)
	if closed.ID != d.ID() || closed.Outcome != "rejected" {
		t.Errorf("%+v", closed)
	}
}

// A page that never stops editing is refused beyond a bound, and its connection survives.
func TestHostileEdits(t *testing.T) { // SPEC A-4
	b := newBenchOf(t, review.Options{MaxProposal: 1 << 20})
	p := b.page("a")
	d := b.propose(filepath.Join(b.root, "f"), "", "x")
	p.Notify("diff/edit", obj{"id": d.ID(), "text": strings.Repeat("x", 2<<20)})
	p.Notify("diff/edit", obj{"id": "none", "text": "x"})
	p.Notify("diff/edit", []int{1})
	p.Notify("context/update", obj{"open": "x"})
	p.Call("ping", nil, nil)
	if text, _ := d.Text(); text != "x" {
		t.Errorf("%d bytes were taken", len(text))
	}
	p.ExpectError(-32012, "diff/accept", obj{"id": d.ID(), "text": strings.Repeat("x", 2<<20)})
}

// SPEC L-3: after a restart, a diff is held for a page that is reconnecting, as for one that reloads; without an
// earlier page it is refused.
func TestShownToPageOnItsWayBackL3(t *testing.T) {
	for _, expected := range []bool{false, true} {
		b := newBench(t, func(o *attach.PageOptions) { o.Expected = expected })
		_, err := b.registry.Open(t.Context(), b.owner, review.Proposal{Key: "/f", Path: "/f", New: "x"}, nil)
		if (err == nil) != expected || b.server.Shows() != expected {
			t.Errorf("expected %v: %v", expected, err)
		}
	}
}

// The page has ten seconds to come back to the companion after a restart, as it has after its own reload.
func TestAwaitedTenSecondsL3(t *testing.T) {
	b := newBench(t, func(o *attach.PageOptions) { o.Expected = true })
	b.server.PagesLeft(9 * time.Second) // ago
	if !b.server.Shows() {
		t.Error("a diff is refused before the page could come back")
	}
	b.server.PagesLeft(10*time.Second + time.Millisecond)
	if b.server.Shows() {
		t.Error("a diff is shown to a page that does not come back")
	}
}
