package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/proc"
)

// maxMessage bounds a message from a companion, in bytes.
const maxMessage = 80 << 20

// A Conn is a connection to a companion as Claude Code opens it, for testing companions. Only one goroutine may use
// it at a time.
type Conn struct {
	ws    *websocket.Conn
	asked int
	heard []message // not asked for yet
}

// message is any message from a companion.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Dial opens a session at a port of this machine: the socket, initialize, initialized, ide_connected (SPEC CC-5). It sends nothing
// to another user's listener (SPEC A-5). It returns a lockfile.ErrToken if the companion does not know the token.
func Dial(ctx context.Context, port int, token string, header http.Header) (*Conn, error) {
	h := http.Header{TokenHeader: {token}}
	for name, values := range header {
		h[name] = values
	}
	ws, res, err := websocket.Dial(ctx, "ws://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))+"/", &websocket.DialOptions{ //nolint:bodyclose // the package closes it
		HTTPHeader: h, Subprotocols: []string{"mcp"}, HTTPClient: &http.Client{Transport: &http.Transport{DialContext: proc.DialOwn}},
	})
	switch {
	case err != nil && res != nil && res.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w (401)", lockfile.ErrToken)
	case err != nil && res != nil:
		return nil, fmt.Errorf("the companion answers %d where a socket should open", res.StatusCode)
	case err != nil:
		return nil, err
	}
	ws.SetReadLimit(maxMessage)
	c := &Conn{ws: ws}
	_, err = c.Call(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"roots": map[string]any{}}, "clientInfo": map[string]string{"name": "pollux", "version": "1"},
	})
	if err == nil {
		err = c.send(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	if err == nil {
		err = c.send(ctx, map[string]any{"jsonrpc": "2.0", "method": "ide_connected", "params": map[string]int{"pid": os.Getpid()}})
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the session.
func (c *Conn) Close() { _ = c.ws.Close(websocket.StatusNormalClosure, "") }

func (c *Conn) send(ctx context.Context, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.ws.Write(ctx, websocket.MessageText, data)
}

// Ask sends a request and returns its number for answer, without waiting.
func (c *Conn) Ask(ctx context.Context, method string, params any) (id int, err error) {
	c.asked++
	return c.asked, c.send(ctx, map[string]any{"jsonrpc": "2.0", "id": c.asked, "method": method, "params": params})
}

// Call sends a request and returns its result, or the companion's error.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id, err := c.Ask(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, id)
}

// answer waits for the result of a request.
func (c *Conn) answer(ctx context.Context, id int) (json.RawMessage, error) {
	m, err := c.await(ctx, func(m message) bool { return m.Method == "" && string(m.ID) == strconv.Itoa(id) })
	if err == nil && m.Error != nil {
		err = errors.New("the companion answers: " + m.Error.Message)
	}
	return m.Result, err
}

// Tools returns the names of the companion's tools.
func (c *Conn) Tools(ctx context.Context) (names []string, err error) {
	data, err := c.Call(ctx, "tools/list", map[string]any{})
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	err = json.Unmarshal(data, &list)
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names, err
}

// Context waits for the next selection_changed and returns its parameters.
func (c *Conn) Context(ctx context.Context) (json.RawMessage, error) {
	return c.hear(ctx, "selection_changed")
}

// Mention waits for the next at_mentioned and returns its parameters.
func (c *Conn) Mention(ctx context.Context) (json.RawMessage, error) {
	return c.hear(ctx, "at_mentioned")
}

// hear waits for the next notification of a method and returns its parameters.
func (c *Conn) hear(ctx context.Context, method string) (json.RawMessage, error) {
	m, err := c.await(ctx, func(m message) bool { return m.Method == method })
	return m.Params, err
}

// await returns the first message that fits, from those received already or later ones.
func (c *Conn) await(ctx context.Context, fits func(message) bool) (message, error) {
	for i, m := range c.heard {
		if fits(m) {
			c.heard = append(c.heard[:i:i], c.heard[i+1:]...)
			return m, nil
		}
	}
	for {
		_, data, err := c.ws.Read(ctx)
		if err != nil {
			return message{}, err
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			return message{}, fmt.Errorf("the companion sends no JSON-RPC: %w", err)
		}
		if m.Method != "" && m.ID != nil { // a request, such as ping; Claude Code answers the methods that it knows
			if err := c.send(ctx, json.RawMessage(jsonrpc.Error(m.ID, jsonrpc.CodeMethodNotFound, "unknown"))); err != nil {
				return message{}, err
			}
			continue
		}
		if fits(m) {
			return m, nil
		}
		c.heard = append(c.heard, m)
	}
}
