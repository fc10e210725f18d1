package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/ownpipe"
)

// Label is what a person calls it, and Name what commands do.
const (
	Label = "Codex"
	Name  = "codex"
)

// errNobody: the companion that answers Codex serves other folders.
var errNobody = errors.New("the program that answers Codex does not serve this folder")

// A Conn asks as a Codex does that was started in a folder. It is for one goroutine at a time.
type Conn struct {
	conn net.Conn
	dir  string
	last string
}

// Dial joins the socket that Codex asks on; "" is that of this user's temporary folder.
func Dial(ctx context.Context, socket, dir string) (*Conn, error) {
	if socket == "" {
		socket = Path(tempDir())
	}
	conn, err := ownpipe.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, dir: dir}, nil
}

// peer is the process that answers, 0 when the system does not say.
func (c *Conn) peer() int {
	pid, _ := ownpipe.Peer(c.conn)
	return pid
}

// Tools are none: Codex asks for a context only.
func (c *Conn) Tools(context.Context) ([]string, error) { return nil, nil }

// Close ends the connection.
func (c *Conn) Close() { _ = c.conn.Close() }

// Context asks what the user looks at, until it is another answer than the last one.
func (c *Conn) Context(ctx context.Context) (json.RawMessage, error) {
	for {
		r, err := c.ask(ctx, methodContext, c.dir)
		switch {
		case err != nil:
			return nil, err
		case r.Error == "no-client-found":
			return nil, errNobody
		case r.Error != "":
			return nil, errors.New("it answers: " + r.Error)
		}
		var v struct {
			Context json.RawMessage `json:"ideContext"`
		}
		data, err := json.Marshal(r.Value)
		if err == nil {
			err = json.Unmarshal(data, &v)
		}
		if err != nil || string(v.Context) != c.last {
			c.last = string(v.Context)
			return v.Context, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second): // Codex asks; nobody tells it
		}
	}
}

// ask sends one question and waits for its answer, ten seconds at most.
func (c *Conn) ask(ctx context.Context, method, root string) (r response, err error) {
	end, _ := ctx.Deadline()
	if soon := time.Now().Add(silence); end.IsZero() || end.After(soon) {
		end = soon
	}
	_ = c.conn.SetDeadline(end)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	data, err := frame(map[string]any{
		"type": "request", "requestId": "pollux", "sourceClientId": us, "version": 0, "method": method, "params": map[string]string{"workspaceRoot": root},
	})
	if err != nil {
		return r, err
	}
	if _, err := c.conn.Write(data); err != nil {
		return r, err
	}
	body, err := readBody(c.conn)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errFrame, err)
	}
	if r.Type != "response" || r.RequestID != "pollux" {
		return r, fmt.Errorf("%w: no answer to the question", errFrame)
	}
	return r, nil
}

// Told is what Codex tells its model with the next prompt of a context (SPEC CX-2); "" for none.
func Told(data []byte) (string, error) {
	var c ideContext
	if err := json.Unmarshal(data, &c); err != nil {
		return "", err
	}
	var parts []string
	if c.Active != nil {
		parts = append(parts, "## Active file: "+filepath.ToSlash(c.Active.Path))
		if c.Active.Content != "" {
			parts = append(parts, "## Active selection of the file:\n"+c.Active.Content)
		}
	}
	if len(c.Open) > 0 {
		tabs := "## Open tabs:"
		for _, f := range c.Open {
			tabs += "\n- " + f.Label + ": " + filepath.ToSlash(f.Path)
		}
		if c.Active != nil && c.Active.Content != "" { // Codex leaves no empty line behind a selection
			parts[len(parts)-1] += "\n" + tabs
		} else {
			parts = append(parts, tabs)
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	return "# Context from my IDE setup:\n\n" + strings.Join(parts, "\n\n"), nil
}
