package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage bounds one message from a client, in bytes.
const maxMessage = 16 << 20

// transport is the SDK's transport over in and out, changed for Gemini CLI (SPEC P-4). It drops the argument
// wait_for_previous, which the CLI adds to every call for itself. It never answers a cancelled request, because the
// CLI would report a connection error. It answers an invalid line with an error; the SDK would end the server. ended
// is called once when the client has disconnected.
type transport struct {
	in    io.Reader
	out   io.Writer
	ended func()
}

// Connect implements [mcp.Transport].
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	out := &oneByOne{w: t.out}
	in := io.NopCloser(&messages{in: bufio.NewReader(t.in), out: out})
	inner := &mcp.IOTransport{Reader: in, Writer: keepOpen{out}, MaxLineLength: maxMessage}
	c, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Connection: c, ended: sync.OnceFunc(t.ended), calls: map[jsonrpc.ID]bool{}}, nil
}

// keepOpen is a writer that Close leaves open.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// oneByOne is a writer that several goroutines can use.
type oneByOne struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneByOne) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// messages reads the valid messages of in, line by line, and answers other lines on out.
type messages struct {
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of the current line
	old  bool   // the client's protocol version has batches
}

// Read implements [io.Reader].
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		var line []byte
		long := false
		more := true
		for more {
			part, err := m.in.ReadSlice('\n')
			if more = errors.Is(err, bufio.ErrBufferFull); err != nil && !more && len(line)+len(part) == 0 {
				return 0, err
			}
			if long = long || len(line)+len(part) > maxMessage; !long {
				line = append(line, part...)
			} else {
				line = line[:min(1, len(line))]
			}
		}
		line = bytes.TrimSpace(line)
		switch {
		case long:
			m.refuse(-32600, "the message is longer than 16 MiB")
		case len(line) == 0:
		case !json.Valid(line):
			m.refuse(-32700, "a line is not JSON; each message is one line")
		case !m.takes(line):
			m.refuse(-32600, "a line is no JSON-RPC 2.0 message")
		default:
			m.rest = append(line, '\n')
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// refuse answers a line whose request id is unknown.
func (m *messages) refuse(code int, why string) {
	_, _ = fmt.Fprintf(m.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, why)
}

// takes says whether the SDK accepts a line: a message or, in an old protocol version, a batch.
func (m *messages) takes(line []byte) bool {
	var batch []json.RawMessage
	if line[0] != '[' {
		batch = append(batch, line)
	} else if !m.old || json.Unmarshal(line, &batch) != nil || len(batch) == 0 {
		return false
	}
	for _, one := range batch {
		message, err := jsonrpc.DecodeMessage(one)
		if err != nil {
			return false
		}
		if r, ok := message.(*jsonrpc.Request); ok && r.Method == "initialize" {
			var params struct{ ProtocolVersion string }
			_ = json.Unmarshal(r.Params, &params)
			m.old = params.ProtocolVersion == "2025-03-26" || params.ProtocolVersion == "2024-11-05"
		}
	}
	return true
}

// conn is one connection of a transport.
type conn struct {
	mcp.Connection
	ended func()

	mu    sync.Mutex
	calls map[jsonrpc.ID]bool // unanswered requests; true: cancelled
}

// Read returns the client's next message, without wait_for_previous.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		c.ended()
		return m, err
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		c.note(r)
		if r.Method == "tools/call" {
			r.Params = withoutWait(r.Params)
		}
	}
	return m, nil
}

// note records requests and cancellations.
func (c *conn) note(r *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.IsCall() {
		c.calls[r.ID] = false
		return
	}
	if r.Method != "notifications/cancelled" {
		return
	}
	var params struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(r.Params, &params) != nil {
		return
	}
	id, err := jsonrpc.MakeID(params.RequestID)
	if err != nil {
		return
	}
	if _, open := c.calls[id]; open {
		c.calls[id] = true
	}
}

// Write sends a message, unless it answers a cancelled request.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		cancelled := c.calls[r.ID]
		delete(c.calls, r.ID)
		c.mu.Unlock()
		if cancelled {
			return nil
		}
	}
	return c.Connection.Write(ctx, m)
}

// withoutWait drops wait_for_previous from a call's arguments. It returns unreadable params unchanged.
func withoutWait(params json.RawMessage) json.RawMessage {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil {
		return params
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(p["arguments"], &args) != nil {
		return params
	}
	if _, there := args["wait_for_previous"]; !there {
		return params
	}
	delete(args, "wait_for_previous")
	data, err := json.Marshal(args)
	if err != nil {
		return params
	}
	p["arguments"] = data
	if data, err = json.Marshal(p); err != nil {
		return params
	}
	return data
}
