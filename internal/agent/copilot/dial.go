package copilot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/ownpipe"
)

// maxMessage bounds a message of a companion's, in bytes.
const maxMessage = 80 << 20

// A Conn is a session with a companion as Copilot CLI opens it, for what tries companions. Its requests may be made from several
// goroutines, Context and Close from one.
type Conn struct {
	http    http.Client
	token   string
	session string
	asked   atomic.Int64
	events  *bufio.Scanner // nil before Context
	end     func()         // of the events
}

// Dial opens a session at a private socket (SPEC GC-1, GC-2). Another user's listener is told nothing (SPEC A-5). A companion that does
// not know the token is a lockfile.ErrToken.
func Dial(ctx context.Context, d finding.Door) (*Conn, error) {
	c := &Conn{token: d.Token, end: func() {}}
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return ownpipe.Dial(ctx, d.Socket) }}
	if _, err := c.Call(ctx, "server/discover", map[string]any{}); err != nil && !errors.Is(err, errAnswer) {
		return nil, err
	}
	_, err := c.Call(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "pollux", "version": "1"},
	})
	if err == nil && c.session == "" {
		err = errors.New("the companion has named no session")
	}
	if err == nil {
		_, err = c.post(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	if err != nil {
		c.http.CloseIdleConnections()
		return nil, err
	}
	return c, nil
}

// Close ends the session.
func (c *Conn) Close() {
	c.end()
	if r, err := c.request(context.Background(), http.MethodDelete, nil); err == nil {
		if res, err := c.http.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}
	c.http.CloseIdleConnections()
}

func (c *Conn) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set(TokenHeader, TokenScheme+c.token)
	r.Header.Set(ProcessHeader, strconv.Itoa(os.Getpid()))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	return r, nil
}

// post sends one message and returns the body of its answer.
func (c *Conn) post(ctx context.Context, message any) ([]byte, error) {
	data, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	r, err := c.request(ctx, http.MethodPost, data)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxMessage))
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w (401)", lockfile.ErrToken)
	case res.StatusCode >= http.StatusBadRequest:
		return nil, fmt.Errorf("the companion answers %d", res.StatusCode)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return body, err
}

// errAnswer marks an error that is the companion's answer.
var errAnswer = errors.New("the companion answers")

// Call sends a request and returns its result.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	body, err := c.post(ctx, map[string]any{"jsonrpc": "2.0", "id": c.asked.Add(1), "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	var m struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("the companion sends no JSON-RPC: %w", err)
	}
	if m.Error != nil {
		return nil, fmt.Errorf("%w: %s", errAnswer, m.Error.Message)
	}
	return m.Result, nil
}

// Tools are the names of the tools that the companion offers.
func (c *Conn) Tools(ctx context.Context) (names []string, err error) {
	data, err := c.Call(ctx, "tools/list", map[string]any{})
	if err != nil {
		return nil, err
	}
	var list struct{ Tools []struct{ Name string } }
	err = json.Unmarshal(data, &list)
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names, err
}

// Context waits for the next word about what the user looks at: the parameters of a selection_changed. ctx of the first call bounds
// all of them.
func (c *Conn) Context(ctx context.Context) (json.RawMessage, error) {
	if c.events == nil {
		if err := c.listen(ctx); err != nil {
			return nil, err
		}
	}
	for c.events.Scan() {
		data, ok := strings.CutPrefix(c.events.Text(), "data: ")
		var m struct {
			Method string
			Params json.RawMessage
		}
		if ok && json.Unmarshal([]byte(data), &m) == nil && m.Method == "selection_changed" {
			return m.Params, nil
		}
	}
	return nil, errors.Join(errors.New("the event stream has ended"), c.events.Err())
}

func (c *Conn) listen(ctx context.Context) error {
	r, err := c.request(ctx, http.MethodGet, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	res, err := c.http.Do(r) //nolint:bodyclose // end closes it
	if err != nil {
		return err
	}
	c.end = func() { _ = res.Body.Close() }
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the companion answers %d where an event stream should open", res.StatusCode)
	}
	c.events = bufio.NewScanner(res.Body)
	c.events.Buffer(nil, maxMessage)
	return nil
}
