package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
)

// JSON-RPC's own error codes.
const (
	codeParse         = -32700
	codeInvalid       = -32600
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeInternal      = -32603
)

// maxRunning is how many requests of one page run at once; further ones are
// not read from its socket before one has ended.
const maxRunning = 8

// A rpcError is the error object of JSON-RPC.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

func failf(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// A message is any of JSON-RPC's three, as it comes in.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

// A peer speaks JSON-RPC 2.0 over a wire, without batches. Notifications are
// handled in order on the reader's goroutine, before anything that came after
// them; requests each on their own, at most maxRunning.
//
// It is not creachadair/jrpc2, the obvious choice, for three reasons: an
// invalid notification before the end of a connection makes jrpc2 (1.3.6)
// panic in a goroutine that nobody can recover, it reads as many requests as
// it is sent before they are worked off, and it scans a large message thrice.
type peer struct {
	wire   *wire
	handle func(ctx context.Context, method string, params json.RawMessage) (any, error)
	log    *slog.Logger

	mu    sync.Mutex // guards what follows
	calls map[string]chan message
	count int
}

// run reads until the connection ends and every request has been handled.
func (p *peer) run() {
	var running sync.WaitGroup
	places := make(chan struct{}, maxRunning)
	for {
		raw, err := p.wire.Recv()
		if err != nil {
			break
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil || m.Version != "2.0" {
			p.reply(json.RawMessage("null"), nil, failf(codeInvalid, "not a JSON-RPC 2.0 message"))
			continue
		}
		isRequest := len(m.ID) > 0 && string(m.ID) != "null"
		switch {
		case m.Method == "" && isRequest:
			p.answered(m)
		case m.Method == "":
			p.reply(json.RawMessage("null"), nil, failf(codeInvalid, "neither method nor id"))
		case !isRequest:
			_, _ = p.do(m) // JSON-RPC has no way to tell
		default:
			select {
			case places <- struct{}{}:
			case <-p.wire.ctx.Done():
				continue
			}
			running.Go(func() {
				result, err := p.do(m)
				p.reply(m.ID, result, err)
				<-places
			})
		}
	}
	p.wire.cancel() // ends the contexts of what still runs, and of calls
	running.Wait()
}

// do handles one message. What a handler does wrong costs its message alone.
func (p *peer) do(m message) (result any, err *rpcError) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("a page's request panicked", "method", m.Method, "panic", r, "stack", string(debug.Stack()))
			err = failf(codeInternal, "pollux failed at %s; its log says more", m.Method)
		}
	}()
	ctx, cancel := context.WithTimeout(p.wire.ctx, requestTimeout)
	defer cancel()
	result, herr := p.handle(ctx, m.Method, m.Params)
	if herr != nil {
		return nil, wireError(herr)
	}
	return result, nil
}

func (p *peer) reply(id json.RawMessage, result any, failed *rpcError) {
	if failed != nil {
		p.send(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   *rpcError       `json:"error"`
		}{"2.0", id, failed})
		return
	}
	p.send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

type outgoing struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  any             `json:"params,omitempty"`
}

// notify queues a notification; it never blocks. A page that has gone, or is
// dropped by this, needs none.
func (p *peer) notify(method string, params any) {
	p.send(outgoing{"2.0", nil, method, params})
}

// call makes a request and decodes its result into out. It waits until the
// page answers, its connection ends or ctx does.
func (p *peer) call(ctx context.Context, method string, params, out any) error {
	answer := make(chan message, 1)
	p.mu.Lock()
	p.count++
	id := strconv.Itoa(p.count)
	p.calls[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.calls, id)
		p.mu.Unlock()
	}()
	p.send(outgoing{"2.0", json.RawMessage(id), method, params})
	select {
	case m := <-answer:
		if m.Error != nil {
			return m.Error
		}
		return json.Unmarshal(m.Result, out)
	case <-ctx.Done():
		return fmt.Errorf("%s: the page has not answered: %w", method, ctx.Err())
	case <-p.wire.ctx.Done():
		return fmt.Errorf("%s: the page has gone", method)
	}
}

func (p *peer) answered(m message) {
	p.mu.Lock()
	answer := p.calls[string(m.ID)]
	delete(p.calls, string(m.ID))
	p.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// send encodes a message. Only what this package makes is encoded, so that it
// cannot fail.
func (p *peer) send(m any) {
	raw, err := json.Marshal(m)
	if err != nil {
		p.log.Error("a message to a page cannot be encoded", "err", err)
		return
	}
	_ = p.wire.Send(raw) // an ended connection needs nothing
}
