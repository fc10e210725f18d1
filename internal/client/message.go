package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
)

// defaultLimit is how long the CLI's library waits for a response by default.
const defaultLimit = time.Minute

// protocol is the MCP version that the CLI requests. It also accepts others in a response.
const protocol = "2025-06-18"

func protocols() []string { return []string{protocol, "2025-03-26", "2024-11-05", "2024-10-07"} }

// A RemoteError is a JSON-RPC error in a response.
type RemoteError struct {
	Code    int
	Message string
}

func (e *RemoteError) Error() string { return fmt.Sprintf("MCP error %d: %s", e.Code, e.Message) }

// An incoming is one message as the CLI's library parses it.
type incoming struct {
	kind   kind
	id     json.RawMessage
	method string
	params json.RawMessage // "{}" when absent
	result json.RawMessage
	err    *RemoteError
	bare   bool // the message had no params
}

type kind int

const (
	isNotification kind = iota
	isRequest
	isResponse
)

// parseMessage checks a message as strictly as the library does: a malformed one is a connection error, and
// disconnects the CLI.
func parseMessage(data []byte) (m incoming, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return m, err
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return m, errors.New(`jsonrpc is not "2.0"`)
	}
	allowed := map[string]bool{"jsonrpc": true}
	for name := range members {
		allowed[name] = allowed[name] || name == "id" || name == "method" || name == "params" || name == "result" || name == "error"
		if !allowed[name] {
			return m, fmt.Errorf("an unknown member %q", name)
		}
	}
	id, hasID := members["id"]
	if hasID {
		if !validID(id) {
			return m, errors.New("the id is neither text nor a whole number")
		}
		m.id = id
	}
	_, hasResult := members["result"]
	_, hasError := members["error"]
	method, hasMethod := members["method"]
	switch {
	case hasMethod && !hasResult && !hasError:
		return m.call(method, members, hasID)
	case hasID && hasResult && !hasError && !hasMethod && members["params"] == nil:
		m.kind, m.result = isResponse, members["result"]
		if !isObject(m.result) {
			return m, errors.New("the result is not an object")
		}
		return m, nil
	case hasID && hasError && !hasResult && !hasMethod && members["params"] == nil:
		m.kind = isResponse
		var e struct {
			Code    *float64
			Message *string
		}
		if json.Unmarshal(members["error"], &e) != nil || e.Code == nil || e.Message == nil || *e.Code != math.Trunc(*e.Code) {
			return m, errors.New("the error has no code or no message")
		}
		m.err = &RemoteError{int(*e.Code), *e.Message}
		return m, nil
	}
	return m, errors.New("neither a request nor an answer")
}

func (m incoming) call(method json.RawMessage, members map[string]json.RawMessage, hasID bool) (incoming, error) {
	if json.Unmarshal(method, &m.method) != nil || len(method) == 0 || method[0] != '"' {
		return m, errors.New("the method is not text")
	}
	m.params, m.bare = json.RawMessage("{}"), true
	if params, ok := members["params"]; ok {
		if !isObject(params) {
			return m, errors.New("params is not an object")
		}
		m.params, m.bare = params, false
	}
	if hasID {
		m.kind = isRequest
	}
	return m, nil
}

func isObject(data json.RawMessage) bool { return len(data) > 0 && data[0] == '{' }

func validID(id json.RawMessage) bool {
	if len(id) > 0 && id[0] == '"' {
		return true
	}
	f, err := strconv.ParseFloat(string(id), 64)
	return err == nil && f == math.Trunc(f)
}

// A book holds the requests that wait for a response.
type book struct {
	mu      sync.Mutex // guards the fields below
	next    int
	waiting map[int]chan incoming
	ended   error // set once nothing will be answered any more
}

func (b *book) open() (id int, answer chan incoming, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return 0, nil, b.ended
	}
	if b.waiting == nil {
		b.waiting = map[int]chan incoming{}
	}
	id, answer = b.next, make(chan incoming, 1)
	b.next++
	b.waiting[id] = answer
	return id, answer, nil
}

func (b *book) drop(id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, id)
}

// answered gives a response to its caller; a response to no request is a fault.
func (b *book) answered(m incoming) error {
	f, err := strconv.ParseFloat(trimQuotes(string(m.id)), 64)
	b.mu.Lock()
	defer b.mu.Unlock()
	answer, ok := b.waiting[int(f)]
	if err != nil || !ok || f != math.Trunc(f) {
		return fmt.Errorf("Received a response for an unknown message ID: %s", m.id)
	}
	delete(b.waiting, int(f))
	answer <- m
	return nil
}

func trimQuotes(s string) string {
	if len(s) >= 2 && s[0] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// end fails every waiting request.
func (b *book) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = err
	for id, answer := range b.waiting {
		answer <- incoming{err: &RemoteError{-32000, "Connection closed"}}
		delete(b.waiting, id)
	}
}

// ask sends a request through send and waits for its response. When ctx ends it tells the companion that nobody waits
// any more, as the CLI does.
func (b *book) ask(ctx context.Context, method string, params any, send func(ctx context.Context, message []byte) error) ([]byte, error) {
	id, answer, err := b.open()
	if err != nil {
		return nil, err
	}
	defer b.drop(id)
	data, err := encode(outgoing{method, params, "2.0", &id})
	if err != nil {
		return nil, err
	}
	sent := make(chan error, 1)
	go func() { sent <- send(ctx, data) }()
	for {
		select {
		case m := <-answer:
			if m.err != nil {
				return nil, m.err
			}
			return m.result, nil
		case err := <-sent:
			if err == nil {
				sent = nil // the response comes by another way
				continue
			}
			if ctx.Err() == nil {
				return nil, err
			}
			sent = nil
		case <-ctx.Done():
			note, _ := encode(outgoing{"notifications/cancelled", cancelled{id, ctx.Err().Error()}, "2.0", nil})
			tell, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = send(tell, note)
			return nil, ctx.Err()
		}
	}
}

// An outgoing is a message with its members in the CLI's order.
type outgoing struct {
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
	JSONRPC string `json:"jsonrpc"`
	ID      *int   `json:"id,omitempty"`
}

type cancelled struct {
	RequestID int    `json:"requestId"`
	Reason    string `json:"reason"`
}

type initialize struct {
	ProtocolVersion string         `json:"protocolVersion"`
	Capabilities    struct{}       `json:"capabilities"`
	ClientInfo      implementation `json:"clientInfo"`
}

type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}
