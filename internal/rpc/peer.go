package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/pollux-companion/pollux/internal/jsontext"
)

// JSON-RPC's own error codes.
const (
	CodeParse         = -32700
	CodeInvalid       = -32600
	CodeNoMethod      = -32601
	CodeInvalidParams = -32602
	CodeInternal      = -32603
)

// An Error is JSON-RPC's error object, sent or received.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error returns the message for a person.
func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// errGone: the other side went away before it answered.
var errGone = errors.New("the other side has gone")

// A Wire carries whole messages; a Queue over a Channel is one.
type Wire interface {
	// Recv returns the next message; any error ends the conversation. Only one goroutine calls it.
	Recv() ([]byte, error)
	// Send takes one message, in pieces that nobody changes afterwards. It must not block for long. Any goroutine may call it.
	Send(pieces ...[]byte) error
}

// An Answer is a result, with a function to call once it has been sent.
type Answer struct {
	Result any
	After  func()
}

// A Later is what a handler returns that is not to hold up the messages behind this one: it runs on a goroutine of its own, at most
// MaxAside at once, and returns what the handler would have returned.
type Later func() (any, error)

// PeerOptions configure a Peer.
type PeerOptions struct {
	// Handle answers a request or takes a notification (whose result is dropped); the result may be an Answer or a
	// Later. An error that is not an *Error becomes an internal error. ctx ends with the conversation.
	Handle func(ctx context.Context, method string, params json.RawMessage) (any, error)
	// Aside reports which requests run on their own goroutines, at most MaxAside (8 when 0) at once. All others are
	// handled in order. nil means all requests.
	Aside    func(method string) bool
	MaxAside int
	// Cancel is the method of the notification {"id": …} that tells the other side that a Call ended without its
	// answer, such as "$/cancelRequest"; "" for none.
	Cancel string
	Log    *slog.Logger // nil discards
}

// A Peer speaks JSON-RPC 2.0 over a Wire, without batches; both sides may ask and answer. It survives any input: a
// malformed message gets an error answer, and a handler that panics loses only its own message. Notifications are
// handled in order on Run's goroutine, before anything that came after them.
//
// Peer replaces creachadair/jrpc2, because jrpc2 1.3.6 crashes on a malformed notification at the end of a connection
// (see check), and refuses "params":null, which real editors send.
type Peer struct {
	wire Wire
	o    PeerOptions
	done chan struct{} // closed when reading has ended

	mu    sync.Mutex // guards the fields below
	calls map[string]chan incoming
	count int
}

// An incoming is a JSON-RPC request, notification or response.
type incoming struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *Error          `json:"error"`
}

type outgoing struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  any             `json:"params,omitempty"`
}

// NewPeer returns a peer that may send at once, and receives once Run is called.
func NewPeer(w Wire, o PeerOptions) *Peer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxAside == 0 {
		o.MaxAside = 8
	}
	return &Peer{wire: w, o: o, done: make(chan struct{}), calls: map[string]chan incoming{}}
}

// Run reads until the wire ends, and returns when every request has been handled. It returns nil when the wire ended
// between two messages.
func (p *Peer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var aside sync.WaitGroup
	places := make(chan struct{}, p.o.MaxAside)
	var end error
	for {
		raw, err := p.wire.Recv()
		if err != nil {
			end = err
			break
		}
		p.handle(ctx, raw, &aside, places)
	}
	close(p.done)
	cancel()
	aside.Wait()
	if errors.Is(end, io.EOF) {
		return nil
	}
	return end
}

// large is the size in bytes from which a message's largest part is not decoded twice.
const large = 8 << 10

// split returns the parts of a message. A large result is checked by the Call that decodes it.
func split(raw []byte) (m incoming, err error) {
	if len(raw) >= large {
		name, value, rest, ok := jsontext.CutChecked(raw, "params", "result")
		if ok && (name == "result" || jsontext.NewScanner(value).Skip()) {
			err = json.Unmarshal(rest, &m)
			if name == "params" {
				m.Params = value
			} else {
				m.Result = value
			}
			return m, err
		}
	}
	return m, json.Unmarshal(raw, &m)
}

// handle handles one message.
func (p *Peer) handle(ctx context.Context, raw []byte, aside *sync.WaitGroup, places chan struct{}) {
	m, err := split(raw)
	if err != nil || m.Version != "2.0" {
		code := CodeInvalid
		if err != nil && !json.Valid(raw) {
			code = CodeParse
		}
		p.reply(nil, nil, Errorf(code, "not a JSON-RPC 2.0 message"))
		return
	}
	isRequest := len(m.ID) > 0 && string(m.ID) != "null"
	switch {
	case isRequest && m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9'):
		p.reply(nil, nil, Errorf(CodeInvalid, "an id that is neither string nor number"))
	case m.Method == "" && isRequest:
		p.answered(m)
	case m.Method == "":
		if m.Error == nil { // never answer a response
			p.reply(nil, nil, Errorf(CodeInvalid, "neither method nor id"))
		}
	case isRequest && (p.o.Aside == nil || p.o.Aside(m.Method)):
		places <- struct{}{}
		aside.Go(func() {
			p.answer(m, isRequest, func() (any, error) { return p.o.Handle(ctx, m.Method, m.Params) })
			<-places
		})
	default:
		later := p.answer(m, isRequest, func() (any, error) { return p.o.Handle(ctx, m.Method, m.Params) })
		if later == nil {
			return
		}
		places <- struct{}{}
		aside.Go(func() {
			p.answer(m, isRequest, later)
			<-places
		})
	}
}

// answer handles a message and answers it, if it is a request; what it returns is still to be done for that.
func (p *Peer) answer(m incoming, isRequest bool, handle func() (any, error)) Later {
	result, err := p.do(m, handle)
	if later, ok := result.(Later); ok {
		return later
	}
	if isRequest { // JSON-RPC has no answer to a notification
		p.reply(m.ID, result, err)
	}
	return nil
}

// do handles one message. A handler that fails or panics loses only this message.
func (p *Peer) do(m incoming, handle func() (any, error)) (result any, err *Error) {
	defer func() {
		if r := recover(); r != nil {
			p.o.Log.Error("a request panicked", "method", m.Method, "panic", r, "stack", string(debug.Stack()))
			err = Errorf(CodeInternal, "pollux failed at %s; its log says more", m.Method)
		}
	}()
	result, failed := handle()
	if failed != nil && !errors.As(failed, &err) {
		err = Errorf(CodeInternal, "%v", failed)
	}
	return result, err
}

func (p *Peer) reply(id json.RawMessage, result any, failed *Error) {
	if id == nil {
		id = json.RawMessage("null")
	}
	if failed != nil {
		p.send(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   *Error          `json:"error"`
		}{"2.0", id, failed})
		return
	}
	answer, ok := result.(Answer)
	if !ok {
		answer.Result = result
	}
	p.send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, answer.Result})
	if answer.After != nil {
		answer.After()
	}
}

// Notify sends a notification. It is dropped when the other side has gone.
func (p *Peer) Notify(method string, params any) { p.send(outgoing{"2.0", nil, method, params}) }

// Call makes a request and decodes its result into out, unless out is nil; a *json.RawMessage gets the raw result, whose
// strings may be invalid. It waits until the other side answers or goes (errGone), or ctx ends.
func (p *Peer) Call(ctx context.Context, method string, params, out any) error {
	return p.Begin(method, params)(ctx, out)
}

// Begin is Call in two steps: it sends the request, before anything that is sent after it, and returns at once. The caller calls wait once.
func (p *Peer) Begin(method string, params any) (wait func(ctx context.Context, out any) error) {
	answer := make(chan incoming, 1)
	p.mu.Lock()
	p.count++
	id := strconv.Itoa(p.count)
	p.calls[id] = answer
	p.mu.Unlock()
	sent := p.send(outgoing{"2.0", json.RawMessage(id), method, params})
	return func(ctx context.Context, out any) error {
		defer func() {
			p.mu.Lock()
			delete(p.calls, id)
			p.mu.Unlock()
		}()
		if !sent {
			return fmt.Errorf("%s: %w", method, errGone)
		}
		return p.await(ctx, id, method, answer, out)
	}
}

// await waits for the answer to a request.
func (p *Peer) await(ctx context.Context, id, method string, answer <-chan incoming, out any) error {
	select {
	case m := <-answer:
		if m.Error != nil {
			return m.Error
		}
		if out == nil {
			return nil
		}
		if raw, ok := out.(*json.RawMessage); ok {
			*raw = m.Result
			return nil
		}
		if err := json.Unmarshal(m.Result, out); err != nil {
			return fmt.Errorf("%s: an answer that is not as agreed: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		if p.o.Cancel != "" {
			p.Notify(p.o.Cancel, struct {
				ID json.RawMessage `json:"id"`
			}{json.RawMessage(id)})
		}
		return fmt.Errorf("%s: no answer in time: %w", method, ctx.Err())
	case <-p.done:
		return fmt.Errorf("%s: %w", method, errGone)
	}
}

func (p *Peer) answered(m incoming) {
	p.mu.Lock()
	answer := p.calls[string(m.ID)]
	delete(p.calls, string(m.ID))
	p.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// send encodes and sends a message. Encoding cannot fail, because this program makes every message itself.
func (p *Peer) send(m any) bool {
	pieces, err := marshal(m)
	if err != nil {
		p.o.Log.Error("a message cannot be encoded", "err", err)
		return false
	}
	return p.wire.Send(pieces...) == nil
}

// Large are parameters of many megabytes: their JSON, in pieces. It is neither checked nor copied.
type Large [][]byte

func marshal(m any) ([][]byte, error) {
	out, _ := m.(outgoing)
	params, large := out.Params.(Large)
	if large {
		out.Params = nil
		m = out
	}
	raw, err := json.Marshal(m)
	if err != nil || !large {
		return [][]byte{raw}, err
	}
	head := append(raw[:len(raw)-1], `,"params":`...)
	return append(append([][]byte{head}, params...), []byte{'}'}), nil
}
