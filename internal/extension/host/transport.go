package host

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage bounds one message of a client's, in bytes.
const maxMessage = 16 << 20

// transport is the SDK's over in and out, changed where Gemini CLI
// needs it (SPEC P-4): the argument wait_for_previous, which the CLI adds to every call for itself, is
// dropped before anybody sees it, and a request that was cancelled gets no answer, which the CLI would take for an
// error of the connection. ended is called once when the client has gone.
type transport struct {
	in    io.Reader
	out   io.Writer
	ended func()
}

// Connect implements [mcp.Transport].
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner := &mcp.IOTransport{Reader: io.NopCloser(t.in), Writer: keepOpen{t.out}, MaxLineLength: maxMessage}
	c, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Connection: c, ended: sync.OnceFunc(t.ended), calls: map[jsonrpc.ID]bool{}}, nil
}

// keepOpen is a writer that somebody else closes.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// conn is one connection of a transport.
type conn struct {
	mcp.Connection
	ended func()

	mu    sync.Mutex
	calls map[jsonrpc.ID]bool // requests without an answer; true: cancelled
}

// Read gives the client's next message, without what the CLI put in for itself.
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

// note remembers what is asked and what is cancelled.
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

// Write sends a message, unless it answers what was cancelled.
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

// withoutWait drops wait_for_previous from the arguments of a call. What it cannot read it leaves alone.
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
