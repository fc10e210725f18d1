package lsp_test

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/rpc"
)

const patience = 2 * time.Minute // 64 MiB under the race detector, on a busy machine

type obj = map[string]any

// A call is a request or notification that the fake editor got.
type call struct {
	Method string
	Params json.RawMessage
}

// An editor is a fake one at the other end of a Server, with the companion
// and the page faked as well.
type editor struct {
	t      *testing.T
	server *lsp.Server
	peer   *rpc.Peer
	in     io.WriteCloser // closes the server's input
	raw    *rpc.Queue
	store  *state.Store
	page   *page
	served chan error
	reg    *review.Registry // this and comp are made while initialize is answered, and only read after that
	comp   *comp

	attached func(*review.Registry) // called when the companion starts, nil for nothing
	whole    func()                 // attach.Core's
	kept     chan history.Entry     // what attach.Core.Keep was given

	mu sync.Mutex // guards what follows
	// answer answers requests; the default is a plugin that opens everything.
	answer map[string]func(json.RawMessage) (any, error)
	got    []call
	came   []string          // methods, in the order in which they came
	texts  map[string]string // of the diffs that it shows
	told   chan struct{}

	watcher  watcher
	reloaded int // how much of got reloads has seen
}

// A comp is a companion that only remembers.
type comp struct {
	stop func()

	mu      sync.Mutex // guards what follows
	roots   []string
	stopped int
	left    int           // of them at the editor's end
	alone   bool          // no agent is connected
	hold    chan struct{} // until it is closed, a stop does not end; nil for at once
}

func (c *comp) Env() (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]string{"ROOTS": filepathList(c.roots)}, nil
}

func filepathList(roots []string) string {
	data, _ := json.Marshal(roots)
	return string(data)
}

func (c *comp) SetRoots(roots []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roots = roots
	return nil
}
func (c *comp) Sessions() []lsp.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alone {
		return nil
	}
	return []lsp.Session{{Name: "Gemini CLI #1", Version: "0.61.0"}}
}
func (c *comp) Sharing() lsp.Sharing { return lsp.Sharing{Agents: "Gemini 1"} }
func (c *comp) leave(alone bool)     { c.mu.Lock(); defer c.mu.Unlock(); c.alone = alone }
func (c *comp) Info() lsp.Info       { return lsp.Info{Version: "test", Port: 1} }
func (c *comp) Leave(ctx context.Context) error {
	c.mu.Lock()
	c.left++
	c.mu.Unlock()
	return c.Stop(ctx)
}
func (c *comp) Stop(context.Context) error {
	c.mu.Lock()
	c.stopped++
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	c.stop()
	return nil
}

// stops is how often it was stopped.
func (c *comp) stops() int { c.mu.Lock(); defer c.mu.Unlock(); return c.stopped }

// A page is one that nobody looks at unless err is nil.
type page struct {
	mu     sync.Mutex // guards what follows
	err    error
	shown  map[string]bool
	bring  int
	closed int
}

func (p *page) Show(_ context.Context, d *review.Diff) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.shown[d.ID()] = true
	}
	return p.err
}

func (p *page) Close(*review.Diff, review.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
}
func (p *page) Content(context.Context, *review.Diff) (review.Edit, bool) {
	return review.Edit{}, false
}
func (p *page) Bring(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bring++
	return p.err
}
func (p *page) shows(id string) bool { p.mu.Lock(); defer p.mu.Unlock(); return p.shown[id] }

// ordered notes which requests come, in their order; each is handled on a goroutine of its own.
type ordered struct {
	*rpc.Queue
	e *editor
}

func (o ordered) Recv() ([]byte, error) {
	data, err := o.Queue.Recv()
	var m struct{ Method string }
	if err == nil && json.Unmarshal(data, &m) == nil && m.Method != "" {
		o.e.mu.Lock()
		defer o.e.mu.Unlock()
		o.e.came = append(o.e.came, m.Method)
	}
	return data, err
}

// start connects a fake editor; reg is nil for one of its own, and nothing is said yet.
func start(t *testing.T, framing rpc.Framing, own func(view review.View) *review.Registry) *editor {
	t.Helper()
	return startWithin(t, patience, framing, own)
}

// startWithin starts one that has so long to open a diff, 0 for what editors have.
func startWithin(t *testing.T, within time.Duration, framing rpc.Framing, own func(view review.View) *review.Registry) *editor {
	t.Helper()
	toServer, in := io.Pipe()
	fromServer, out := io.Pipe()
	e := &editor{t: t, in: in, store: state.New(nil), page: &page{err: context.DeadlineExceeded, shown: map[string]bool{}}, served: make(chan error, 1),
		answer: map[string]func(json.RawMessage) (any, error){}, texts: map[string]string{}, told: make(chan struct{}, 1), kept: make(chan history.Entry, 8)}
	e.server = lsp.New(rpc.NewChannel(toServer, out, nil), lsp.Options{Version: "1.2.3", OpenWithin: within, Start: func(_ context.Context, h lsp.Hello) (lsp.Companion, error) {
		e.reg = own(e.server)
		e.comp = &comp{roots: h.Roots, stop: e.reg.Shut}
		e.server.Attach(attach.Core{Store: e.store, Registry: e.reg, Page: e.page, Watch: e.watch, Whole: e.whole, Keep: func(entry history.Entry) { e.kept <- entry }})
		if e.attached != nil {
			e.attached(e.reg)
		}
		return e.comp, nil
	}})
	e.raw = rpc.NewQueue(rpc.NewChannel(fromServer, in, &rpc.Options{First: framing}))
	e.peer = rpc.NewPeer(ordered{e.raw, e}, rpc.PeerOptions{Handle: e.handle})
	go func() { e.served <- e.server.Serve(t.Context()) }()
	go func() { _ = e.peer.Run(t.Context()) }()
	t.Cleanup(func() {
		in.Close()
		fromServer.Close()
		e.store.Shut()
	})
	return e
}

func newRegistry(view review.View) *review.Registry {
	return review.New(review.Options{View: view, ShowTimeout: patience, ContentTimeout: patience})
}

// full starts one with a plugin and says hello.
func full(t *testing.T) *editor {
	t.Helper()
	e := start(t, rpc.Lines, newRegistry)
	e.hello(nil)
	return e
}

// hello initializes with a plugin's announcement and more.
func (e *editor) hello(more obj) json.RawMessage {
	e.t.Helper()
	pollux := obj{"version": 1, "context": true, "openDiff": true, "env": true, "ide": obj{"name": "fake", "displayName": "Fake"}}
	for k, v := range more {
		pollux[k] = v
	}
	return e.initialize(obj{"processId": nil, "workspaceFolders": []obj{{"uri": "file://" + e.t.TempDir()}}, "initializationOptions": obj{"pollux": pollux}})
}

func (e *editor) initialize(params obj) json.RawMessage {
	e.t.Helper()
	return e.ask("initialize", params)
}

// ask makes a request that succeeds.
func (e *editor) ask(method string, params any) json.RawMessage {
	e.t.Helper()
	out, err := e.try(method, params)
	if err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
	return out
}

func (e *editor) try(method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out json.RawMessage
	err := e.peer.Call(ctx, method, params, &out)
	return out, err
}

// drain returns when everything sent before has been handled.
func (e *editor) drain() { _, _ = e.try("pollux/unknown", nil) }

func (e *editor) handle(_ context.Context, method string, params json.RawMessage) (any, error) {
	e.mu.Lock()
	e.got = append(e.got, call{method, params})
	answer := e.answer[method]
	e.mu.Unlock()
	select {
	case e.told <- struct{}{}:
	default:
	}
	if answer != nil {
		return answer(params)
	}
	var p struct {
		ID  string `json:"diffId"`
		New string `json:"newText"`
	}
	_ = json.Unmarshal(params, &p)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch method {
	case "pollux/openDiff":
		e.texts[p.ID] = p.New
		return obj{"opened": true}, nil
	case "pollux/closeDiff":
		text, ok := e.texts[p.ID]
		if !ok {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "no such diff")
		}
		delete(e.texts, p.ID)
		return obj{"content": text}, nil
	}
	return nil, rpc.Errorf(rpc.CodeNoMethod, "no such method")
}

// on sets how a method is answered.
func (e *editor) on(method string, f func(json.RawMessage) (any, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer[method] = f
}

// text is what the editor holds of a diff, "" for one that it does not show.
func (e *editor) text(id string) string { e.mu.Lock(); defer e.mu.Unlock(); return e.texts[id] }

// shown waits until the editor has n diffs on show.
func (e *editor) shown(n int) {
	e.t.Helper()
	e.until("the number of views", func() bool { e.mu.Lock(); defer e.mu.Unlock(); return len(e.texts) == n })
}

// last is the parameters of the latest call of a method, which has come.
func (e *editor) last(method string) (params json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.got {
		if c.Method == method {
			params = c.Params
		}
	}
	return params
}

// heard waits for the first call of a method and returns its parameters.
func (e *editor) heard(method string) json.RawMessage {
	e.t.Helper()
	var params json.RawMessage
	e.until(method, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.got {
			if c.Method == method {
				params = c.Params
				return true
			}
		}
		return false
	})
	return params
}

func (e *editor) until(what string, ok func() bool) {
	e.t.Helper()
	until(e.t, what, ok)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
