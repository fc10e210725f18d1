// Package host serves extensions to an MCP client over standard input and output: one tool for each tool of an
// extension, documents as resources, and descriptions on demand (SPEC P-3, P-4). No failure of an extension ends it.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/dispatch"
)

// Options of Serve. Dispatcher is required.
type Options struct {
	Dispatcher *dispatch.Dispatcher
	// Version is the version of pollux.
	Version string
	// Instructions returns what the client tells its model at the start, for what is offered then; nil tells nothing.
	Instructions func(*capability.Set) string
	// News returns text for the model about offers that the client did not learn at its start. It is part of the
	// instructions and, kept current, of the description of pollux's own tool. Its calls never overlap; it may be
	// nil.
	News func(*capability.Set) string
	// Gateway says that a set has too many tools to declare all. Then only tools that are Pinned, that the model has
	// described, or that ran Lately are declared, and pollux's own tool runs any of them. nil declares all. Pinned
	// and Lately name tools by extension.tool, or extensions; they may be nil.
	Gateway        func(*capability.Set) bool
	Pinned, Lately func() []string
	// Prompts offers the extensions' examples as prompts, which most clients show as commands.
	Prompts bool
	// Watch lists files and folders to watch, given what is offered now; nil watches nothing.
	Watch func(*capability.Set) []string
	// Changed is told what is offered after each look at the disk; it may be nil.
	Changed func(*capability.Set)
	// Ready is called once after the handshake, for slow preparations; it may be nil.
	Ready func()
	// Extend adds other tools before the client is served; it may be nil.
	Extend func(*mcp.Server)
	// Log gets what helps to find a fault; nil for nobody.
	Log *slog.Logger
}

// maxParallel is how many calls run at once; more of them wait.
const maxParallel = 16

// A host is one server for one client. Serve owns its goroutines: the SDK's, which end with the connection; those of
// calls, which end with their tools; and one that watches the disk.
type host struct {
	o      Options
	server *mcp.Server
	slots  chan struct{}
	alive  context.Context // ends with the connection
	lists  atomic.Int64    // how often the client listed the tools
	edits  atomic.Int64    // how often the tools changed
	edited atomic.Int64    // the value of lists at the last change
	deaf   atomic.Bool     // the client ignored a change of the tools

	looking sync.Mutex // held while the disk is read and the result offered; lock it before mu

	mu        sync.Mutex // guards the fields below, and the features of server
	own       map[string]string
	tools     map[string]string
	resources map[string]string
	prompts   map[string]string
	wanted    []string // what the model has described, the newest first
}

// Serve serves one client until it disconnects or ctx ends. It writes only protocol messages to out. The error is nil
// after an orderly disconnect.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	alive, end := context.WithCancel(ctx)
	defer end()
	h := &host{
		o: o, alive: alive, slots: make(chan struct{}, maxParallel),
		own: map[string]string{}, tools: map[string]string{}, resources: map[string]string{}, prompts: map[string]string{},
	}
	h.survive("reading the extensions", func() {
		if _, err := o.Dispatcher.Refresh(); err != nil {
			o.Log.Error("the extensions cannot be read", "err", err) // the server reports this when asked
		}
	})
	set := o.Dispatcher.Set()
	h.server = newServer(o, set)
	h.server.AddReceivingMiddleware(h.observe)
	h.server.AddTool(readTool(), h.answerOwn(capability.ReadDoc))
	h.survive("offering the extensions", func() { h.sync(set) })
	if o.Extend != nil {
		o.Extend(h.server)
	}
	if o.Changed != nil {
		o.Changed(set)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		if h.settled(alive) && o.Ready != nil { // the handshake comes first
			h.survive("getting ready", o.Ready)
		}
		if o.Watch != nil {
			h.watch(alive)
		}
	})
	err := h.server.Run(alive, &transport{in: in, out: out, ended: end})
	end()
	watching.Wait()
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		err = nil
	}
	return err
}

func newServer(o Options, set *capability.Set) *mcp.Server {
	caps := &mcp.ServerCapabilities{
		Tools:     &mcp.ToolCapabilities{ListChanged: true},
		Resources: &mcp.ResourceCapabilities{ListChanged: true},
	}
	if o.Prompts {
		caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	}
	instructions := ""
	if o.Instructions != nil {
		instructions = o.Instructions(set)
	}
	if o.News != nil {
		instructions += o.News(set)
	}
	return mcp.NewServer(&mcp.Implementation{Name: capability.Bridge, Title: "pollux: extensions", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: caps, Logger: o.Log,
		PageSize: 1 << 20, // Gemini CLI reads only the first page
		// From 2026-07-28 on a server may ask its client something only within an answer, so pollux could not ask for
		// consent.
		SupportedProtocolVersions: slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool { return v >= "2026" }),
	})
}

// observe counts the client's lists, so that settle knows when it has seen a change. It passes a call of an unknown
// tool to the dispatcher, which suggests near names or asks for missing consent.
func (h *host) observe(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if method == "tools/list" {
			h.lists.Add(1)
			h.deaf.Store(false)
		}
		if call, ok := req.(*mcp.CallToolRequest); ok && err != nil && strings.Contains(err.Error(), "unknown tool") {
			return h.guard(ctx, call, func(ctx context.Context) dispatch.Reply {
				return h.o.Dispatcher.Call(ctx, call.Params.Name, call.Params.Arguments)
			})
		}
		return result, err
	}
}

// survive runs f outside any call. A panic is logged and ends nothing.
func (h *host) survive(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			h.o.Log.Error(what+" panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// refresh reads the disk and offers the result. Refreshes do not overlap, or an older result could be offered last.
func (h *host) refresh() {
	h.looking.Lock()
	defer h.looking.Unlock()
	set, err := h.o.Dispatcher.Refresh()
	if err != nil {
		h.o.Log.Error("the extensions cannot be read", "err", err)
		return
	}
	h.sync(set)
	if h.o.Changed != nil {
		h.o.Changed(set)
	}
}

// How long an answer waits for a client to notice changed tools. Gemini CLI declares a tool in its next request only
// if it listed the tool some time before the answer.
const (
	listWait  = 3 * time.Second
	listPause = 300 * time.Millisecond
)

// awaitList waits briefly until the client has listed the tools after their last change. A client that did not list them
// after an earlier change is not waited for.
func (h *host) awaitList(ctx context.Context) {
	if h.deaf.Load() {
		return
	}
	deadline := time.NewTimer(listWait)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for h.lists.Load() == h.edited.Load() {
		select {
		case <-tick.C:
		case <-deadline.C:
			h.deaf.Store(true)
			return
		case <-ctx.Done():
			return
		}
	}
	select {
	case <-time.After(listPause):
	case <-ctx.Done():
	}
}

// guard runs f with what a call needs: cancellation with the connection, a slot, and the session for questions. A
// panic becomes an answer.
func (h *host) guard(ctx context.Context, req *mcp.CallToolRequest, f func(context.Context) dispatch.Reply) (result *mcp.CallToolResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			h.o.Log.Error("a call panicked", "tool", req.Params.Name, "panic", r, "stack", string(debug.Stack()))
			result, err = answer(dispatch.Reply{Failed: true, Text: fmt.Sprintf("pollux made a mistake in %q: %v; the tools go on working", req.Params.Name, r)}), nil
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.alive, cancel)()
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	reply := f(withSession(ctx, req.Session))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // nobody waits for the answer
	}
	return answer(reply), nil
}

// answer returns a reply as exactly one block of text.
func answer(r dispatch.Reply) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.TrimRight(r.Text, "\n")}}, IsError: r.Failed}
}
