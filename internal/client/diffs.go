package client

import (
	"context"
	"errors"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
)

// A RefusedError is the companion's reason for not showing a diff. The CLI then asks in the terminal.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// openDiff and closeDiff are the arguments as the CLI writes them.
type (
	openArgs struct {
		FilePath   string `json:"filePath"`
		NewContent string `json:"newContent"`
	}
	closeArgs struct {
		FilePath             string `json:"filePath"`
		SuppressNotification bool   `json:"suppressNotification,omitempty"`
	}
	call struct {
		Name      string `json:"name"`
		Arguments any    `json:"arguments"`
	}
)

// OpenDiff shows a proposal in the editor and blocks until its outcome (SPEC K-3). One
// diff is open at a time; others wait. When ctx ends first, OpenDiff closes the diff and
// returns ctx's error, which the CLI itself cannot do. A *RefusedError says that the
// companion does not show the diff.
func (c *Client) OpenDiff(ctx context.Context, path, content string) (Outcome, error) {
	select {
	case c.diffs <- struct{}{}:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	defer func() { <-c.diffs }()
	c.mu.Lock()
	s := c.session
	outcome := make(chan Outcome, 1)
	if s != nil {
		c.pending[path] = outcome
	}
	c.mu.Unlock()
	if s == nil {
		return Outcome{}, errNotConnected
	}
	if err := c.show(ctx, s, path, content); err != nil {
		c.forget(path)
		if ctx.Err() != nil {
			c.withdraw(path)
		}
		return Outcome{}, err
	}
	select {
	case out := <-outcome:
		return out, nil
	case <-ctx.Done():
		c.forget(path)
		c.withdraw(path)
		return Outcome{}, ctx.Err()
	}
}

func (c *Client) show(ctx context.Context, s session, path, content string) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	data, err := s.request(ctx, jsonrpc.MethodToolsCall, call{wire.ToolOpenDiff, openArgs{path, content}})
	if err != nil {
		return err
	}
	r, err := parseResult(data)
	if err != nil || !r.isError {
		return err
	}
	if r.text == "" {
		r.text = "Tool 'openDiff' reported an error."
	}
	return &RefusedError{r.text}
}

func (c *Client) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, path)
}

// withdraw closes a diff that nobody waits for any more.
func (c *Client) withdraw(path string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = c.closeDiff(ctx, path, true)
}

// Resolve is the user's answer in the terminal. It closes the diff and gives it that outcome, with the text as the user
// edited it. It blocks until the companion has answered, as the CLI does.
func (c *Client) Resolve(ctx context.Context, path string, accept bool) error {
	c.mu.Lock()
	waiting, ok := c.pending[path]
	c.mu.Unlock()
	content, err := c.closeDiff(ctx, path, true)
	if !ok {
		return err
	}
	out := Outcome{Accepted: accept}
	if accept {
		out.Content = content
	}
	c.mu.Lock()
	if c.pending[path] == waiting {
		delete(c.pending, path)
	} else {
		ok = false // the editor was quicker
	}
	c.mu.Unlock()
	if ok {
		waiting <- out
	}
	return err
}

// CloseDiff closes a diff and returns the user's text; nil when the companion does not
// say that it differs from the proposal.
func (c *Client) CloseDiff(ctx context.Context, path string) (*string, error) {
	return c.closeDiff(ctx, path, true)
}

func (c *Client) closeDiff(ctx context.Context, path string, quietly bool) (*string, error) {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil {
		return nil, errNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	data, err := s.request(ctx, jsonrpc.MethodToolsCall, call{wire.ToolCloseDiff, closeArgs{path, quietly}})
	if err != nil {
		return nil, err
	}
	r, err := parseResult(data)
	if err == nil && r.isError {
		err = errors.New(r.text)
	}
	if err != nil {
		return nil, err
	}
	return editedContent(r.text), nil
}
