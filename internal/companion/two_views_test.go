package companion

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/editor/lsp/lsptest"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// A screen is one view of a companion's with a user in front of it. It knows of a proposal only what it was told.
type screen interface {
	// shows waits until the view shows a text of the proposal.
	shows(id, text string)
	edit(id, text string)
	// accept accepts what the view shows.
	accept(id string) error
	// stale accepts what the view shows, while the view has not heard of what happens meanwhile.
	stale(id string, meanwhile func()) error
	reject(id string) error
	// gone waits until the view shows the proposal no more.
	gone(id string)
}

// A desk is a companion with the views of one user.
type desk struct {
	t      *testing.T
	o      Options
	folder string
	c      *Companion
	plugin *lsptest.Plugin
	line   sync.RWMutex // held for writing, nothing passes between the plugin and pollux
}

// opened returns how each kind of view is opened.
func opened() map[string]func(d *desk) screen {
	return map[string]func(d *desk) screen{
		"page": func(d *desk) screen {
			address, err := d.c.PageAddress()
			if err != nil {
				d.t.Fatal(err)
			}
			return &pageScreen{p: webtest.Open(d.t, address, "page"), version: -1}
		},
		"lsp": func(d *desk) screen { return pluginScreen{d} },
		"reviewer": func(d *desk) screen {
			r := &reviewerScreen{t: d.t, c: join(d.t, d.o, d.folder)}
			if err := r.c.Attach(d.t.Context()); err != nil {
				d.t.Fatal(err)
			}
			return r
		},
		"test's own": func(d *desk) screen {
			s := &ownScreen{t: d.t, r: d.c.reg, news: make(chan review.Event, 100)}
			d.t.Cleanup(d.c.reg.Watch(func(e review.Event) { s.news <- e }))
			return s
		},
	}
}

// SPEC F-10, F-13: whatever two views show one proposal, the edit of one reaches the other, nothing but the newest text is accepted, and the
// decision in one ends it in both. Every pair of views plays that in both directions. (An editor's process has one companion for itself,
// and a test's own view shows nothing alone, so these two are not paired with themselves.)
func TestTwoViews(t *testing.T) {
	for first, openFirst := range opened() {
		for second, openSecond := range opened() {
			if first == second && (first == "lsp" || first == "test's own") {
				continue
			}
			t.Run(first+" and "+second, func(t *testing.T) {
				d := &desk{t: t}
				d.o, d.folder, _ = options(t)
				d.begin(first == "lsp" || second == "lsp")
				d.play(openFirst(d), openSecond(d))
			})
		}
	}
}

// begin starts the companion, behind an editor or alone.
func (d *desk) begin(editor bool) {
	if !editor {
		d.c = start(d.t, d.o)
		return
	}
	var err error
	d.plugin, err = lsptest.Start(d.t.Context(), lsptest.Options{
		Delay: func() time.Duration { d.line.RLock(); defer d.line.RUnlock(); return 0 },
		Start: func(view review.View) *review.Registry {
			d.o.Editor = view.(Editor)
			d.c = start(d.t, d.o)
			return d.c.reg
		},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { d.plugin.Close() })
}

// play tells the story: one edits and the other decides; one edits and the other accepts what it still shows; one rejects.
func (d *desk) play(one, other screen) {
	t, file := d.t, filepath.Join(d.folder, "a.txt")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := &reviewtest.Owner{Name: "agent"}
	propose := func(text string) string {
		id := agent.Propose(t, d.c.reg, file, "one\n", text).ID()
		one.shows(id, text)
		other.shows(id, text)
		return id
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	outcomes := []review.Kind{}
	ends := func(id string, kind review.Kind, text string) {
		t.Helper()
		outcomes = append(outcomes, kind)
		told := agent.ExpectTold(t, outcomes...)
		if o := told[len(told)-1].Outcome; kind == review.Accepted && (o.Content != text || !o.Edited) {
			t.Errorf("%q is accepted, edited: %v; want %q", o.Content, o.Edited, text)
		}
		one.gone(id)
		other.gone(id)
	}

	id := propose("one\ntwo\n")
	one.edit(id, "one\n2\n")
	other.shows(id, "one\n2\n")
	must("accepting the other's edit", other.accept(id))
	ends(id, review.Accepted, "one\n2\n")

	id = propose("one\nthree\n")
	if err := other.stale(id, func() { one.edit(id, "one\n3\n") }); err == nil {
		t.Error("a text is accepted that is not the newest")
	}
	other.shows(id, "one\n3\n")
	must("accepting the newest", other.accept(id))
	ends(id, review.Accepted, "one\n3\n")

	id = propose("one\nfour\n")
	must("rejecting", one.reject(id))
	ends(id, review.Rejected, "")
}

// A pageScreen is a tab of the browser.
type pageScreen struct {
	p       *webtest.Page
	id      string
	text    string
	version int
	edits   int
}

func (s *pageScreen) shows(id, text string) {
	if s.id != id {
		var d struct {
			Text    string
			Version int
		}
		s.p.Expect("diff/opened", nil)
		s.p.Call("diff/read", map[string]string{"id": id}, &d)
		s.id, s.text, s.version, s.edits = id, d.Text, d.Version, 0
	}
	for s.text != text {
		var news struct {
			Text    string
			Version int
		}
		s.p.Expect("diff/text", &news) // the test fails where none comes
		s.text, s.version = news.Text, news.Version
	}
}

func (s *pageScreen) edit(id, text string) {
	s.edits++
	s.p.Call("diff/edit", map[string]any{"id": id, "text": text, "version": s.version, "edit": s.edits}, nil)
	s.text = text
}

func (s *pageScreen) accept(id string) error {
	return s.p.Try("diff/accept", map[string]any{"id": id, "version": s.version}, nil)
}

func (s *pageScreen) stale(id string, meanwhile func()) error {
	meanwhile()
	return s.accept(id) // with the version of the last note that was looked at
}

func (s *pageScreen) reject(id string) error {
	return s.p.Try("diff/reject", map[string]string{"id": id}, nil)
}

func (s *pageScreen) gone(string) { s.p.Expect("diff/closed", nil) }

// A pluginScreen is an editor with pollux's plugin.
type pluginScreen struct{ d *desk }

// eventually waits until the plugin's view fits; nil is no view.
func (s pluginScreen) eventually(id, what string, fits func(v *lsptest.View) bool) {
	s.d.t.Helper()
	var v lsptest.View
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var ok bool
		if v, ok = s.d.plugin.See(id); ok && fits(&v) || !ok && fits(nil) {
			return
		}
	}
	s.d.t.Fatalf("the editor does not show %s; it has %q", what, v.Text)
}

func (s pluginScreen) shows(id, text string) {
	s.eventually(id, text, func(v *lsptest.View) bool { return v != nil && v.Text == text })
}

func (s pluginScreen) edit(id, text string) {
	s.d.plugin.Type(id, func(string) string { return text })
	deadline := time.Now().Add(within)
	for d, ok := s.d.c.reg.Get(id); ok; time.Sleep(time.Millisecond) { // the plugin reports a little later
		if now, _ := d.Text(); now == text {
			return
		}
		if time.Now().After(deadline) {
			s.d.t.Fatal("nobody hears of the editor's edit")
		}
	}
}

func (s pluginScreen) decide(id, outcome string) chan error {
	done := make(chan error, 1)
	s.d.plugin.Decide(id, outcome, func(_ lsptest.View, err error) { done <- err })
	return done
}

func (s pluginScreen) accept(id string) error {
	return await(s.d.t, "an answer", s.decide(id, "accepted"))
}

func (s pluginScreen) stale(id string, meanwhile func()) error {
	s.d.line.Lock()
	meanwhile()
	done := s.decide(id, "accepted")
	s.d.line.Unlock()
	return await(s.d.t, "an answer", done)
}

func (s pluginScreen) reject(id string) error {
	return await(s.d.t, "an answer", s.decide(id, "rejected"))
}

func (s pluginScreen) gone(id string) {
	s.eventually(id, "the end", func(v *lsptest.View) bool { return v == nil })
}

// A reviewerScreen is pollux review, in its words to the companion.
type reviewerScreen struct {
	t       *testing.T
	c       *control.Client
	heard   uint64 // version of the queue
	version int    // of the text on show
}

// hears waits for a new queue that fits. It looks at nothing before it is told that there is something new.
func (s *reviewerScreen) hears(what string, fits func(q control.Queue) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	for {
		q, err := s.c.Watch(ctx, s.heard)
		if err != nil {
			s.t.Fatalf("the reviewer does not hear of %q: %v", what, err)
		}
		if q.Version != s.heard && fits(q) {
			s.heard = q.Version
			return
		}
		s.heard = q.Version
	}
}

func (s *reviewerScreen) shows(id, text string) {
	s.t.Helper()
	s.hears(text, func(q control.Queue) bool {
		if !one(q) || q.Diffs[0].ID != id {
			return false
		}
		now, version, err := s.c.Text(s.t.Context(), id)
		s.version = version
		return err == nil && now == text
	})
}

func (s *reviewerScreen) edit(id, text string) {
	version, err := s.c.Edit(s.t.Context(), id, text, &s.version)
	if err != nil {
		s.t.Fatal(err)
	}
	s.version = version
}

func (s *reviewerScreen) decide(id string, accept bool) error {
	return s.c.Decide(s.t.Context(), control.Decision{ID: id, Accept: accept, Seen: control.Seen{Version: s.version}})
}

func (s *reviewerScreen) accept(id string) error { return s.decide(id, true) }

func (s *reviewerScreen) stale(id string, meanwhile func()) error {
	meanwhile()
	return s.accept(id) // with the version that was shown last
}

func (s *reviewerScreen) reject(id string) error { return s.decide(id, false) }
func (s *reviewerScreen) gone(string)            { s.hears("the end", none) }

// An ownScreen follows the registry's events as any view can.
type ownScreen struct {
	t    *testing.T
	r    *review.Registry
	news chan review.Event
	now  review.State
	id   string
}

// hears waits for an event of the proposal's.
func (s *ownScreen) hears(id string, fits func(e review.Event) bool) {
	s.t.Helper()
	for {
		if e := await(s.t, "the event", s.news); e.Diff != nil && e.Diff.ID() == id && fits(e) {
			return
		}
	}
}

func (s *ownScreen) shows(id, text string) {
	s.t.Helper()
	for s.id != id || s.now.Text != text {
		s.hears(id, func(e review.Event) bool {
			s.id, s.now = id, e.Diff.Now()
			return true
		})
	}
}

func (s *ownScreen) edit(id, text string) {
	if _, err := s.r.Edit(id, review.Edit{Text: text, From: &s.now.Seen.Text, By: s}); err != nil {
		s.t.Fatal(err)
	}
	s.now.Text = text
}

func (s *ownScreen) accept(id string) error { return s.r.Accept(id, s.now.Seen, nil) }

func (s *ownScreen) stale(id string, meanwhile func()) error {
	meanwhile()
	err := s.accept(id)
	if err != nil && !errors.Is(err, review.ErrStale) {
		s.t.Errorf("%v", err)
	}
	return err
}

func (s *ownScreen) reject(id string) error { return s.r.Reject(id) }

func (s *ownScreen) gone(id string) {
	s.hears(id, func(e review.Event) bool { return e.Kind == review.Decided })
}
