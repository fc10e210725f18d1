package web_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// A bench is a server with everything that it needs, over a folder of the test's.
type bench struct {
	t        *testing.T
	root     string
	ws       *workspace.Workspace
	store    *state.Store
	registry *review.Registry
	server   *web.Server
	owner    *owner
}

// lateView lets the registry be made before its view, as a companion does.
type lateView struct{ review.View }

func newBench(t *testing.T, change ...func(*attach.PageOptions)) *bench {
	t.Helper()
	return newBenchOf(t, review.Options{}, change...)
}

func newBenchOf(t *testing.T, bounds review.Options, change ...func(*attach.PageOptions)) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New([]string{root}, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := state.New(&state.Options{Keep: ws.Sharing})
	view := &lateView{}
	if bounds.View == nil {
		bounds.View = view
	}
	registry := review.New(bounds)
	o := attach.PageOptions{
		Registry: registry, Store: store, Workspace: ws,
		Name: "pollux", Version: "1.2.3", PID: 42, AgentPort: 4711,
	}
	for _, f := range change {
		f(&o)
	}
	server := web.New(o)
	server.SetGrace(600 * time.Millisecond)
	view.View = server
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), webtest.Patience)
		defer cancel()
		registry.Shut()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		store.Shut()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	b := &bench{t: t, root: root, ws: ws, store: store, registry: registry, server: server, owner: newOwner("Gemini CLI #1")}
	b.eventually("the listener", func() bool { _, err := server.PageURL(); return err == nil })
	return b
}

// page opens a page that has said hello.
func (b *bench) page(clientID string) *webtest.Page {
	b.t.Helper()
	return webtest.Open(b.t, b.address(), clientID)
}

func (b *bench) address() string {
	b.t.Helper()
	u, err := b.server.PageURL()
	if err != nil {
		b.t.Fatal(err)
	}
	return u
}

// write puts a file into the workspace, from outside of pollux.
func (b *bench) write(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bench) disk(path string) string {
	b.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// propose opens a diff as an agent does.
func (b *bench) propose(path, old, proposal string) *review.Diff {
	b.t.Helper()
	d, err := b.registry.Open(context.Background(), b.owner, review.Proposal{
		Key: path, Path: path, Old: old, New: proposal, IsNew: old == "", Title: "Gemini CLI #1 wants to change it",
	}, func(*review.Diff) {})
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// eventually polls until ok.
func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	for end := time.Now().Add(webtest.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	b.t.Fatalf("not in time: %s", what)
}

// An owner remembers its outcomes.
type owner struct {
	label    string
	outcomes chan review.Outcome
}

func newOwner(label string) *owner { return &owner{label, make(chan review.Outcome, 64)} }

func (o *owner) Label() string                            { return o.label }
func (o *owner) Settled(_ *review.Diff, r review.Outcome) { o.outcomes <- r }

// outcome waits for the next one.
func (o *owner) outcome(t *testing.T) review.Outcome {
	t.Helper()
	select {
	case r := <-o.outcomes:
		return r
	case <-time.After(webtest.Patience):
		t.Fatal("no outcome")
		return review.Outcome{}
	}
}

func TestShowNeedsAPage(t *testing.T) { // SPEC F-2
	b := newBench(t)
	_, err := b.registry.Open(t.Context(), b.owner, review.Proposal{Key: "/x", Path: "/x", New: "y"}, func(*review.Diff) {})
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a diff without a page: %v", err)
	}
	p := b.page("a")
	d := b.propose(filepath.Join(b.root, "f"), "", "y")
	p.Expect("diff/opened", nil)
	p.Leave() // a reload: the diff stays, and others may still be shown
	b.eventually("the page has gone", func() bool { return b.server.Pages() == 0 })
	b.propose(filepath.Join(b.root, "g"), "", "z")
	p = b.connect()
	var hello struct{ Diffs []struct{ ID string } }
	p.Call("hello", map[string]any{"clientId": "a"}, &hello)
	if len(hello.Diffs) != 2 || hello.Diffs[0].ID != d.ID() {
		t.Fatalf("after a reload: %+v", hello)
	}
}

// connect opens a page that has said nothing yet.
func (b *bench) connect() *webtest.Page {
	b.t.Helper()
	origin, key := webtest.Login(b.t, b.address())
	return webtest.Connect(b.t, origin, key)
}
