// Package clienttest runs a companion inside a test's process, for tests of its clients: the real server for CLIs
// with its discovery file, and an editor that the test controls.
package clienttest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// Options of a Companion; zero fields mean the default.
type Options struct {
	// Base is a folder of the test, absolute and canonical: the temp folder of the CLIs, with the workspace "app" in
	// it.
	Base string
	// PID goes into the discovery file; the default is this process.
	PID int
	// Port and Token are fixed when set.
	Port  int
	Token string
	// NoFile writes no discovery file.
	NoFile bool
	// File changes the discovery file before it is written.
	File func(*discovery.File)
	// Change changes the server's options.
	Change func(*mcp.Options)
}

// A Companion runs from Start to Stop.
type Companion struct {
	Store    *state.Store
	Registry *review.Registry
	Addr     string // host:port
	Port     int
	Token    string
	Base     string
	Root     string // Base/app
	File     string // the discovery file's path
	Socket   string // the socket of agents that use a private one; package ownpipe's Name

	server *mcp.Server
	place  *discovery.Place
	served chan error
	once   sync.Once

	private string // the folder of Socket, "" without one
	err     error  // error of Stop
}

// DefaultToken is a Companion's token unless Options.Token is set.
const DefaultToken = "a-token-of-the-tests-that-is-as-long-as-a-real-one"

// Start starts a companion whose editor shows every diff and decides none.
func Start(o Options) (*Companion, error) {
	c := &Companion{Base: o.Base, Root: filepath.Join(o.Base, "app"), Token: o.Token, served: make(chan error, 1)}
	if c.Token == "" {
		c.Token = DefaultToken
	}
	if o.PID == 0 {
		o.PID = os.Getpid()
	}
	if err := os.MkdirAll(c.Root, 0o700); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(o.Port))
	if err != nil {
		return nil, err
	}
	c.Addr, c.Port = l.Addr().String(), l.Addr().(*net.TCPAddr).Port
	work, err := workspace.New([]string{c.Root}, nil)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	c.Store = state.New(&state.Options{Keep: work.Sharing})
	c.Registry = review.New(review.Options{View: everything{}})
	so := mcp.Options{
		Store: c.Store, Registry: c.Registry, Version: "test", Log: slog.New(slog.DiscardHandler),
		Agents: []mcp.Agent{{Name: "gemini", Label: "Gemini CLI", Token: c.Token, Dialect: gemini.Dialect{}}},
	}
	if o.Change != nil {
		o.Change(&so)
	}
	c.server = mcp.New(so)
	go func() { c.served <- c.server.Serve(l) }()
	if err := c.servePrivate(so.Agents); err != nil {
		return c, err
	}
	if o.NoFile {
		return c, nil
	}
	c.place = discovery.NewPlace(discovery.DirIn(o.Base), o.PID, c.Port)
	c.File = c.place.Path()
	file := discovery.File{Port: c.Port, Roots: []string{c.Root}, Token: c.Token, IDE: &discovery.IDE{Name: "test", DisplayName: "Test Editor"}}
	if o.File != nil {
		o.File(&file)
	}
	return c, c.place.Put(&file)
}

// servePrivate opens a private socket if one of the agents uses one. The end of the server closes it.
func (c *Companion) servePrivate(agents []mcp.Agent) error {
	if !slices.ContainsFunc(agents, func(a mcp.Agent) bool { return a.Private }) {
		return nil
	}
	dir, err := os.MkdirTemp("", "pollux-") // a short path, for the socket
	if err != nil {
		return err
	}
	c.private = dir
	ln, err := ownpipe.ListenIn([]string{filepath.Join(dir, "run")}, ".agents")
	if err != nil {
		return err
	}
	c.Socket = ownpipe.Name(ln.Addr().String())
	go func() { _ = c.server.Serve(ln) }()
	return nil
}

// Sessions lists the sessions of this moment.
func (c *Companion) Sessions() []mcp.SessionInfo { return c.server.Sessions() }

// Stop ends the companion in order: it first rejects open diffs, as companions do. It may be called again.
func (c *Companion) Stop() error {
	c.once.Do(func() { c.err = c.stop() })
	return c.err
}

func (c *Companion) stop() error {
	c.Registry.Shut()
	var errs []error
	if c.place != nil {
		errs = append(errs, c.place.Remove())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	errs = append(errs, c.server.Shutdown(ctx))
	c.Store.Shut()
	if c.private != "" {
		errs = append(errs, os.RemoveAll(c.private))
	}
	return errors.Join(append(errs, <-c.served)...)
}

// AcceptAll accepts every proposal from now on.
func (c *Companion) AcceptAll() { c.Registry.SetRule(review.Rule{Mode: review.AcceptAll}) }

// Open reports files as open, the first one active with its cursor at its start, and waits until that is published.
func (c *Companion) Open(paths ...string) {
	if len(paths) == 0 {
		return
	}
	published := make(chan struct{}, 1)
	cancel := c.Store.Subscribe(func(snap *state.Snapshot) {
		if snap.Active == paths[0] {
			select {
			case published <- struct{}{}:
			default:
			}
		}
	})
	defer cancel()
	c.Store.Report("window", state.Report{Active: paths[0], Cursor: &state.Position{}, Front: true, Open: paths})
	select {
	case <-published:
	case <-time.After(20 * time.Second):
	}
}

// everything is a review.View that shows every diff.
type everything struct{}

func (everything) Show(context.Context, *review.Diff) error { return nil }
func (everything) Close(*review.Diff, review.Outcome)       {}
func (everything) Content(context.Context, *review.Diff) (review.Edit, bool) {
	return review.Edit{}, false
}
