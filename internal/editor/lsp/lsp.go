// Package lsp adapts editors that speak JSON-RPC over standard input and
// output, in the shape of the Language Server Protocol: those with a plugin of
// pollux's in full, every other LSP client as far as LSP goes.
// Positions are 0-based in UTF-16 units. Documents are named by file: URIs. The text of a
// diff is whole, with its own line endings.
package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// Times of a Server.
const (
	// openWithin is the default of Options.OpenWithin.
	openWithin = 5 * time.Second
	// statusEvery is how long a change of the status waits for further ones.
	statusEvery = 100 * time.Millisecond
	// ruleEvery is how long a change that a rule has accepted waits for further ones, to be told with them.
	ruleEvery = 500 * time.Millisecond
	// flushWithin is how long the last messages may take to be written at the end.
	flushWithin = 300 * time.Millisecond
	// settleWithin bounds how long an editor's end waits for diffs that are just coming back.
	settleWithin = 500 * time.Millisecond
	// stopWithin bounds the companion's stop, which has bounds of its own.
	stopWithin = time.Second
)

// A Session is one connected CLI.
type Session struct {
	Name    string `json:"name"`    // as in review.Owner.Label
	Version string `json:"version"` // the CLI's own; "" when it said none
	ID      int    `json:"id"`      // the number in its name
}

// A Sharing says in words who is told what the user looks at.
type Sharing struct {
	// Agents counts the connected sessions: "Gemini 2, Claude 1". Untold are the agents among them that are told nothing.
	Agents string `json:"agents"`
	Untold string `json:"untold"`
	// Sentence says it all; "" when nobody is connected.
	Sentence string `json:"sharing"`
}

// A mention is a place that an editor's user points an agent at.
type mention struct {
	Session int    `json:"session"` // Session.ID; 0 for the only one
	Path    string `json:"uri"`     // a file or folder
	First   int    `json:"first"`   // lines, 1-based; 0 for the whole file
	Last    int    `json:"last"`
	Words   string `json:"words"` // the words that follow in the prompt
	// Terminal is the first process of the editor's own terminal that is meant, instead of a session; 0 for none.
	Terminal int `json:"processId"`
}

// An Info is what a person wants to know about the companion.
type Info struct {
	Version       string   `json:"version"`
	Port          int      `json:"port"`
	Roots         []string `json:"roots"`
	DiscoveryFile string   `json:"discoveryFile"`
	Resumed       bool     `json:"resumed"`
	Log           string   `json:"log,omitempty"` // the log file's path
}

// A Companion is what an editor's process starts at its initialize.
type Companion interface {
	// Env is what the editor's terminals need (SPEC D-7).
	Env() (map[string]string, error)
	SetRoots(roots []string) error
	Sessions() []Session
	Sharing() Sharing
	Info() Info
	// Stop rejects the open diffs and ends everything within a second. It may be called again.
	Stop(ctx context.Context) error
	// Leave stops the companion at the editor's end. A keeper may go on serving connected CLIs (SPEC L-4).
	Leave(ctx context.Context) error
}

// Options configure a Server.
type Options struct {
	// Start starts the companion of this process. It is called once at most, and must call
	// Server.Attach before it returns.
	Start func(ctx context.Context, h Hello) (Companion, error)
	// Version is pollux's own.
	Version string
	Log     *slog.Logger // nil discards
	// OpenWithin is how long an editor may take to open a document, or a diff before pollux
	// shows that itself; 5 s when 0.
	OpenWithin time.Duration
}

// A Server is one editor process as pollux sees it, from its first byte to its last. It
// feeds the store, and it is a review.View. Its methods may be called from any goroutine.
// Goroutines, all ended with Serve: Serve's, which reads and handles everything in
// order; the queue's writer; one that watches the editor's process; one that sends the
// status; one that looks for files, and one that has them watched; and a short one for
// each closeDiff and question that is under way.
type Server struct {
	o     Options
	log   *slog.Logger
	queue *rpc.Queue
	peer  *rpc.Peer

	ctx    context.Context // ends with Serve
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	ready  chan struct{} // closed when initialize has been answered; nothing is sent before
	wake   chan struct{} // one place: the status may have changed
	opened chan struct{} // one place: buffers or sessions came or went
	ended  chan error    // one place: why Serve ends before its input does

	hello   atomic.Pointer[Hello] // nil before initialize
	core    attach.Core           // set by Attach, before hello is
	unwatch func()                // set by Attach, as core is

	life sync.Mutex // held while the companion starts or stops, so that others see it whole or not at all
	over bool       // Serve ends and nothing may start any more; guarded by life

	mu        sync.Mutex // guards what follows
	companion Companion  // nil before initialize, and after shutdown
	asked     bool       // initialize came
	down      bool       // shutdown came
	views     map[string]*view
	announced map[string]*announced    // by diff id
	turns     map[string]chan struct{} // by diff id; see inTurn
	roots     []string
	buffers   []string // files open in the editor, whether they exist or not
	lastError string
	byRule    []string // files whose changes a rule accepted and the user was not told yet
}

var _ review.View = (*Server)(nil)

// New returns a server that speaks over ch.
func New(ch *rpc.Channel, o Options) *Server {
	s := &Server{
		o: o, log: o.Log, queue: rpc.NewQueue(ch), ready: make(chan struct{}), wake: make(chan struct{}, 1), opened: make(chan struct{}, 1), ended: make(chan error, 1),
		views: map[string]*view{}, announced: map[string]*announced{}, turns: map[string]chan struct{}{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.o.OpenWithin == 0 {
		s.o.OpenWithin = openWithin
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.peer = rpc.NewPeer(s.queue, rpc.PeerOptions{
		Handle: s.handle,
		Aside:  func(method string) bool { return method == "workspace/executeCommand" },
		Cancel: "$/cancelRequest",
		Log:    s.log,
	})
	return s
}

// ErrExit: the editor sent exit without shutdown, which LSP calls an error.
var ErrExit = errors.New("the editor said exit before shutdown")

// Serve reads until the editor sends exit, closes its side or ends, or until ctx ends.
// Then it stops the companion. It returns nil for every end that the editor may choose.
func (s *Server) Serve(ctx context.Context) error {
	read := make(chan error, 1)
	go func() { read <- s.peer.Run(s.ctx) }()
	var err error
	select {
	case err = <-read:
		if err != nil {
			s.log.Warn("the editor's side has ended", "err", err)
		}
	case err = <-s.ended:
	case <-ctx.Done():
	}
	s.stop(ctx, Companion.Leave, true)
	if s.unwatch != nil {
		s.unwatch()
	}
	s.queue.Close(flushWithin)
	s.cancel()
	s.tasks.Wait()
	return err
}

// stop stops the companion once, by its Stop or Leave. With over, no companion starts afterwards. It returns when the companion
// has stopped, whoever stopped it.
func (s *Server) stop(ctx context.Context, how func(Companion, context.Context) error, over bool) {
	s.life.Lock()
	defer s.life.Unlock()
	s.over = s.over || over
	s.mu.Lock()
	c := s.companion
	s.companion = nil
	s.mu.Unlock()
	if c == nil {
		return
	}
	s.settle()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := how(c, ctx); err != nil {
		s.log.Warn("the companion's stop", "err", err)
	}
}

// end makes Serve return.
func (s *Server) end(err error) {
	select {
	case s.ended <- err:
	default:
	}
}

// Attach gives the server what it feeds and shows. The companion calls it once, before
// it serves anybody.
func (s *Server) Attach(core attach.Core) {
	s.core = core
	s.unwatch = core.Registry.Watch(s.heard)
	core.Store.FollowPause(func(bool) { poke(s.wake) }) // lasts until the store is shut
}

// Full says that the editor speaks pollux's own methods.
func (s *Server) Full() bool {
	h := s.hello.Load()
	return h != nil && h.Pollux != nil
}

// Shows says whether the user sees a diff in the editor: in a view of its own, or as a question about it.
func (s *Server) Shows() bool {
	h := s.hello.Load()
	return s.diffs() || h != nil && h.Pollux == nil && h.messages
}

// diffs says whether the editor shows diffs itself.
func (s *Server) diffs() bool {
	h := s.hello.Load()
	return h != nil && h.Pollux != nil && h.Pollux.OpenDiff
}

// handle handles every message of the editor's.
func (s *Server) handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "initialize":
		return s.initialize(ctx, params)
	case "exit":
		s.mu.Lock()
		down := s.down
		s.mu.Unlock()
		if down {
			s.end(nil)
		} else {
			s.end(ErrExit)
		}
		return nil, nil
	case "shutdown":
		return nil, s.shutdown(ctx, params)
	}
	s.mu.Lock()
	ready := s.companion != nil
	s.mu.Unlock()
	if !ready {
		if method == "$/cancelRequest" || method == "initialized" {
			return nil, nil
		}
		return nil, rpc.Errorf(codeNotInitialized, "%s came before initialize or after shutdown", method)
	}
	if f, ok := methods()[method]; ok {
		return f(s, params)
	}
	return nil, rpc.Errorf(rpc.CodeNoMethod, "pollux does not know %q", method)
}

// shutdown stops the companion. A plugin sends keep: false when its user has stopped pollux but not the editor.
func (s *Server) shutdown(ctx context.Context, params json.RawMessage) error {
	var p struct {
		Keep *bool `json:"keep"`
	}
	how := Companion.Leave
	if decode(params, &p) == nil && p.Keep != nil && !*p.Keep {
		how = Companion.Stop
	}
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.stop(ctx, how, false)
	return nil
}

// codeNotInitialized is LSP's code for a request before initialize.
const codeNotInitialized = -32002

// methods are the methods of a connected editor.
func methods() map[string]func(*Server, json.RawMessage) (any, error) {
	return map[string]func(*Server, json.RawMessage) (any, error){
		"initialized":                         (*Server).nothing,
		"$/cancelRequest":                     (*Server).nothing,
		"$/setTrace":                          (*Server).nothing,
		"workspace/didChangeConfiguration":    (*Server).nothing,
		"pollux/didChangeContext":             (*Server).didChangeContext,
		"pollux/didChangeTrust":               (*Server).didChangeTrust,
		"pollux/didChangeDiagnostics":         (*Server).didChangeDiagnostics,
		"pollux/didChangeDiff":                (*Server).didChangeDiff,
		"pollux/diffResolved":                 (*Server).diffResolved,
		"pollux/resolveDiff":                  (*Server).resolveDiff,
		"textDocument/didOpen":                (*Server).didOpen,
		"textDocument/didChange":              (*Server).didTouch,
		"textDocument/didSave":                (*Server).didTouch,
		"textDocument/didClose":               (*Server).didClose,
		"textDocument/hover":                  (*Server).position,
		"textDocument/signatureHelp":          (*Server).position,
		"textDocument/documentHighlight":      (*Server).positions,
		"textDocument/selectionRange":         (*Server).positions,
		"textDocument/inlayHint":              (*Server).positions,
		"textDocument/codeAction":             (*Server).codeAction,
		"workspace/didChangeWorkspaceFolders": (*Server).didChangeFolders,
		"workspace/didRenameFiles":            (*Server).didRename,
		"workspace/didDeleteFiles":            (*Server).didDelete,
		"workspace/executeCommand":            (*Server).execute,
		"workspace/didChangeWatchedFiles":     (*Server).nothing,
		"window/workDoneProgress/cancel":      (*Server).nothing,
		"textDocument/willSave":               (*Server).nothing,
		"workspace/didCreateFiles":            (*Server).nothing,
		"textDocument/didChangeVisibleRanges": (*Server).nothing,
		"$/progress":                          (*Server).nothing,
		"$/logTrace":                          (*Server).nothing,
	}
}

func (s *Server) nothing(json.RawMessage) (any, error) { return nil, nil }
