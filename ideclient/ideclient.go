// Package ideclient lets a Go program use an editor as Gemini CLI does: find
// the companion that serves a folder, hear what the user looks at, and ask
// the user through the editor's diff view.
// It works with every companion that Gemini CLI works with, not only with pollux. It
// decides as the CLI does which discovery file and which address to take, and normalises
// a context as the CLI does. One diff is open at a time. A fault of the connection
// disconnects for good: call Connect again.
package ideclient

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/client"
)

// Options of Connect; nil and every zero field mean the default.
type Options struct {
	// Dir is the folder for which to find a companion; the current one by default.
	Dir string
	// Environ is the environment as NAME=value, this process's by default. The
	// CLI's own variables in it (GEMINI_CLI_IDE_SERVER_PORT …) count, and TMPDIR.
	Environ []string
	// Version is the version that the client gives to the companion; by default the release
	// of Gemini CLI that it behaves as.
	Version string
	// OnContext is called with each new context, one after the other, and with nil when
	// the connection is lost. It must return soon and not call the Client.
	OnContext func(*Context)
	// OnLost is called with the reason when the connection is lost. It must not call the Client.
	OnLost func(reason string)
}

// A Context is what the user looks at: newest first, at most ten files, one
// of them active. Workspace is nil when the editor says nothing. It must not be changed.
type Context = client.Context

// A Workspace is an editor's Files and, where it has the notion, whether they are Trusted.
type Workspace = client.Workspace

// A File has its Path, its Timestamp (Unix milliseconds of the last focus), and, when
// IsActive, the Cursor and the Selected text, cut at 16,384 UTF-16 units.
type File = client.File

// A Cursor is a position: Line and Character (in UTF-16 units) count from 1.
type Cursor = client.Cursor

// An Outcome says whether the user accepted. Content is the accepted text; nil means the proposal as it was.
type Outcome = client.Outcome

// A RefusedError is the editor's reason for not showing a diff; ask the user in another way.
type RefusedError = client.RefusedError

// A ConnectError says, in Gemini CLI's words, why there is no connection. To find out what
// to do, run pollux doctor.
type ConnectError = client.ConnectError

// A Client is one connection, from Connect to Close. Its methods may be called from any goroutine.
type Client struct{ c *client.Client }

// Connect finds the companion of a folder and joins it. The error is a *ConnectError.
func Connect(ctx context.Context, o *Options) (*Client, error) {
	if o == nil {
		o = &Options{}
	}
	w := &client.World{Environ: o.Environ}
	if o.Dir != "" {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, err
		}
		w.Dir = dir
	}
	c := client.New(w, &client.Options{Version: o.Version, OnContext: o.OnContext, OnStatus: func(s client.Status) {
		if s.State == client.Disconnected && o.OnLost != nil {
			o.OnLost(s.Details)
		}
	}})
	if err := c.Connect(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return &Client{c}, nil
}

// Context returns the newest context; nil before the first, and after the connection is lost.
func (c *Client) Context() *Context { return c.c.Context() }

// Connected says whether the connection stands.
func (c *Client) Connected() bool { return c.c.Status().State == client.Connected }

// Diffing says whether the editor shows diffs.
func (c *Client) Diffing() bool { return c.c.Diffing() }

// OpenDiff proposes a text for the file at an absolute path, and blocks until the user
// has decided. It writes nothing: writing is the caller's work. Diffs of one client wait
// for each other. When ctx ends first, the diff is closed.
func (c *Client) OpenDiff(ctx context.Context, path, content string) (Outcome, error) {
	if !filepath.IsAbs(path) {
		return Outcome{}, errors.New("the path of a diff must be absolute: " + path)
	}
	return c.c.OpenDiff(ctx, path, content)
}

// CloseDiff closes an open diff without waiting for the user. It returns the text as the
// user has edited it; nil when it is as proposed.
func (c *Client) CloseDiff(ctx context.Context, path string) (*string, error) {
	return c.c.CloseDiff(ctx, path)
}

// Close closes the diffs that are open and ends the session.
func (c *Client) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.c.Leave(ctx)
}
