// Package client is Gemini CLI's half of the contract: it finds a companion as
// the CLI does, joins it, understands what it says, and keeps its promises and
// its habits (SPEC §8). It decides as the published CLI does; a test gives both the same
// folders, environments and messages.
package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
)

// version is the release of the CLI that this package behaves as.
const version = "0.61.0"

// requestLimit is how long the CLI waits for the answer to a tool call.
const requestLimit = 10 * time.Minute

// A State is the state that "/ide status" shows with a lamp.
type State string

// The states of a connection.
const (
	Disconnected State = "disconnected"
	Connecting   State = "connecting"
	Connected    State = "connected"
)

// A Status is a state, with a reason when there is one.
type Status struct {
	State   State
	Details string
}

// Options of a Client; nil and every zero field mean the default.
type Options struct {
	// Version is the version that the client gives; Version of this package by default.
	Version string
	// OnContext is called with each new context, nil when it is cleared. It must not call the client.
	OnContext func(*Context)
	// OnStatus is called with each change of the status. It must not call the client.
	OnStatus func(Status)
	// OnFault is called with each fault of a session. That includes early faults, which the CLI
	// forgets when it has connected. It must not call the client.
	OnFault func(error)
	// Transport replaces the network in tests. The default never uses a proxy, as the CLI does not for its editor.
	Transport http.RoundTripper
	// Log gets the CLI's debug messages; nil discards them.
	Log *slog.Logger
}

// A Client plays one CLI. Its methods may be called from any goroutine.
// Goroutines: those of its session; Close ends and awaits them.
type Client struct {
	world *World
	opts  Options

	diffs chan struct{} // holds one token: one diff at a time (SPEC K-3)

	mu      sync.Mutex // guards the below
	status  Status
	session session
	tools   []string
	context *Context
	pending map[string]chan Outcome // the waiting diffs, by the path that was sent
	choice  *Choice
}

// A session is one MCP session over some transport.
type session interface {
	request(ctx context.Context, method string, params any) (result []byte, err error)
	close()
	// leave tells the companion that the session is over. The CLI itself never does that.
	leave(ctx context.Context)
}

// New returns a client that is not connected. A nil world is this process's own.
func New(w *World, o *Options) *Client {
	c := &Client{
		world: w.orHere(), diffs: make(chan struct{}, 1),
		pending: map[string]chan Outcome{},
		status:  Status{Disconnected, msgDisabled},
	}
	if o != nil {
		c.opts = *o
	}
	if c.opts.Version == "" {
		c.opts.Version = version
	}
	if c.opts.Log == nil {
		c.opts.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A ConnectError says, in the CLI's own words, why it is not connected.
type ConnectError struct{ Details string }

func (e *ConnectError) Error() string { return e.Details }

// Connect does what "/ide enable" does: it chooses one discovery file, checks the
// workspace, and tries the file's port, the file's command, then the environment's
// (SPEC K-1). The error is a *ConnectError with the sentence that the CLI would show.
func (c *Client) Connect(ctx context.Context) error {
	choice := Choose(c.world)
	c.mu.Lock()
	c.choice = choice
	c.mu.Unlock()
	if choice.Fault == nil && choice.IDE != nil {
		c.setStatus(Connecting, "")
	}
	if err := choice.Refusal(c.world); err != nil {
		return c.refuse(err.Error())
	}
	for _, way := range choice.Ways(c.world) {
		if err := c.join(ctx, way); err == nil {
			return nil
		} else {
			c.opts.Log.Debug("a way to the companion failed", "way", way.String(), "err", err)
		}
		if ctx.Err() != nil {
			return c.refuse(ctx.Err().Error())
		}
	}
	return c.refuse(fmt.Sprintf(msgFailed, " in "+choice.IDE.DisplayName))
}

func (c *Client) refuse(details string) error {
	c.setStatus(Disconnected, details)
	return &ConnectError{details}
}

// Join connects to a companion without searching for one.
func (c *Client) Join(ctx context.Context, way Way) error {
	c.setStatus(Connecting, "")
	if err := c.join(ctx, way); err != nil {
		c.setStatus(Disconnected, err.Error())
		return err
	}
	return nil
}

func (c *Client) join(ctx context.Context, way Way) error {
	s, err := open(ctx, way, c.opts.Version, c.opts.Transport, c)
	if err != nil {
		return err
	}
	c.mu.Lock()
	old := c.session
	c.session = s
	c.mu.Unlock()
	if old != nil {
		old.close()
	}
	names, err := listTools(ctx, s)
	if err != nil {
		c.opts.Log.Debug("no tools", "err", err) // the CLI connects all the same, for context alone
	}
	c.mu.Lock()
	c.tools = names
	c.mu.Unlock()
	c.setStatus(Connected, "")
	return nil
}

func listTools(ctx context.Context, s session) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultLimit)
	defer cancel()
	data, err := s.request(ctx, jsonrpc.MethodToolsList, struct{}{})
	if err != nil {
		return nil, err
	}
	return parseTools(data)
}

// Status returns the state of the connection.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Tools returns the names of the tools that the companion listed; none before the connection.
func (c *Client) Tools() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tools)
}

// Diffing says whether the CLI would show changes in the editor: it is connected, and both tools are listed (SPEC F-1).
func (c *Client) Diffing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.diffing()
}

func (c *Client) diffing() bool {
	return c.session != nil && c.status.State == Connected &&
		slices.Contains(c.tools, wire.ToolOpenDiff) && slices.Contains(c.tools, wire.ToolCloseDiff)
}

// Context returns the newest context, normalised (SPEC K-2); nil when there is none. It must not be changed.
func (c *Client) Context() *Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.context
}

// setStatus follows the CLI: the first cause of a disconnection stays the reason, and without a connection there is no context.
func (c *Client) setStatus(state State, details string) {
	c.mu.Lock()
	changed := state != Disconnected || c.status.State != Disconnected
	if changed {
		c.status = Status{state, details}
	}
	status := c.status
	cleared := state == Disconnected && c.context != nil
	if cleared {
		c.context = nil
	}
	c.mu.Unlock()
	if changed && c.opts.OnStatus != nil {
		c.opts.OnStatus(status)
	}
	if cleared && c.opts.OnContext != nil {
		c.opts.OnContext(nil)
	}
}

// lost disconnects for good, as any fault of a session does. Only a new Connect helps.
func (c *Client) lost(err error) {
	c.setStatus(Disconnected, msgLost+"\n"+err.Error())
}

// faulted reports a fault. When the session stands, the fault disconnects it.
func (c *Client) faulted(err error, standing bool) {
	if c.opts.OnFault != nil {
		c.opts.OnFault(err)
	}
	if standing {
		c.lost(err)
	}
}

// ended: the other side closed the session.
func (c *Client) ended() { c.setStatus(Disconnected, msgClosed) }

// notified handles one notification. A malformed one is a fault of the session.
func (c *Client) notified(method string, params []byte) error {
	switch method {
	case wire.NotifyContext:
		ctx, err := ParseContext(params)
		if err != nil {
			return fmt.Errorf("Uncaught error in notification handler: %w", err)
		}
		c.mu.Lock()
		c.context = ctx
		c.mu.Unlock()
		if c.opts.OnContext != nil {
			c.opts.OnContext(ctx)
		}
	case wire.NotifyAccepted, wire.NotifyRejected, wire.NotifyClosed:
		path, out, err := parseOutcome(method, params)
		if err != nil {
			return fmt.Errorf("Uncaught error in notification handler: %w", err)
		}
		c.settle(path, out)
	}
	return nil
}

// settle gives a waiting diff its outcome, and ignores an outcome that nobody waits for.
func (c *Client) settle(path string, out Outcome) bool {
	c.mu.Lock()
	waiting, ok := c.pending[path]
	delete(c.pending, path)
	c.mu.Unlock()
	if ok {
		waiting <- out
	}
	return ok
}

// Close ends the client as the CLI ends: it closes each open diff, and drops the
// connection. It does not delete the session; see Leave.
func (c *Client) Close() {
	c.mu.Lock()
	paths := make([]string, 0, len(c.pending))
	for path := range c.pending {
		paths = append(paths, path)
	}
	s := c.session
	c.mu.Unlock()
	slices.Sort(paths)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, path := range paths {
		_, _ = c.closeDiff(ctx, path, false)
	}
	c.setStatus(Disconnected, "IDE integration disabled. To enable it again, run /ide enable.")
	if s != nil {
		s.close()
	}
}

// Leave deletes the session and then closes, so that the companion need not wait 30 s to
// know that it is over. The CLI does not do this; a short visitor like pollux doctor should.
func (c *Client) Leave(ctx context.Context) {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil {
		s.leave(ctx)
	}
	c.Close()
}

// errNotConnected: no session exists in which a diff could open.
var errNotConnected = errors.New("IDE client is not connected.")

// Sentences of the CLI that a user sees; pollux doctor --explain looks them up.
const (
	msgFailed      = "Failed to connect to IDE companion extension%s. Please ensure the extension is running. To install the extension, run /ide install."
	msgNoFolder    = "To use this feature, please open a workspace folder in your IDE and try again."
	msgMismatch    = "Directory mismatch. Gemini CLI is running in a different location than the open workspace in the IDE. Please run the CLI from one of the following directories: "
	msgUnsupported = "IDE integration is not supported in your current environment. To use this feature, run Gemini CLI in one of these supported IDEs: Antigravity, VS Code, or VS Code forks."
	msgLost        = "IDE connection error. The connection was lost unexpectedly. Please try reconnecting by running /ide enable"
	msgDisabled    = "IDE integration is currently disabled. To enable it, run /ide enable."
	msgClosed      = "IDE connection closed. To reconnect, run /ide enable."
)

// A Way is one way to reach a companion: a port, or a command.
type Way struct {
	Host    string // "127.0.0.1", or another for a CLI in a container
	Port    int
	Socket  string // a private socket, for an agent that connects there and not to Port
	Token   string // "" sends none
	Command string // a program that speaks over its standard input and output, when Port is 0
	Args    []string
	Dir     string   // the command's working folder, "" for this process's
	Env     []string // the command's environment; nil gives what the CLI passes on
	// From says where it was found: "the discovery file", "the environment".
	From string
}

// String names the way, without its token.
func (w Way) String() string {
	if w.Port != 0 {
		return "http://" + w.Host + ":" + strconv.Itoa(w.Port) + "/mcp"
	}
	return w.Command
}

// Unsupported returns the CLI's sentence when it finds neither a companion that introduces itself nor a terminal that it knows.
func Unsupported() string { return msgUnsupported }

// Failed returns the CLI's sentence when no way of a choice leads to a companion.
func Failed(c *Choice) string {
	name := ""
	if c.IDE != nil {
		name = " in " + c.IDE.DisplayName
	}
	return fmt.Sprintf(msgFailed, name)
}

// Disabled returns the CLI's sentence when its IDE mode is off.
func Disabled() string { return msgDisabled }
