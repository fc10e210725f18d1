// Package companion is one running companion: it starts the parts in their
// order, so that a CLI that finds it finds it whole, and stops them in
// reverse within a second, with every open diff answered first (SPEC L-1 to L-3).
package companion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/codex"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/journal"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/settings"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// stopWithin bounds Stop (SPEC L-1 allows a second for all of it).
const stopWithin = 800 * time.Millisecond

// upkeepAfter is how long after its start a companion looks for what the dead left.
const upkeepAfter = 300 * time.Millisecond

// keepAfter is how long after a session's process was found the record is written: one time for many sessions.
const keepAfter = 20 * time.Millisecond

// stopAtLeast is what a part has when others have taken all of that.
const stopAtLeast = 20 * time.Millisecond

// claimWithin is how long a start waits for a companion of the same workspace that is stopping.
const claimWithin = stopWithin + 400*time.Millisecond

// Options configure a companion. Dirs and Roots are needed, the rest has defaults.
type Options struct {
	Dirs     settings.Dirs
	Settings settings.Settings
	// Roots are the workspace's folders; they are made absolute and canonical.
	Roots []string
	// IDE is how the companion introduces itself; pollux itself when zero.
	IDE discovery.IDE
	// PID is the editor's process, for the name of the discovery file
	// (SPEC D-2); this process when 0.
	PID int
	// Version is pollux's own.
	Version string
	// Port is the agent's, when the user insists on one; 0 lets A-1 or the system choose.
	Port int
	// Editor is the process of an editor that shows the diffs. nil: the page does.
	Editor *lsp.Server
	// OpenPage opens an address of the page in the user's browser, where an
	// editor cannot show what must be shown; nil where that is not wanted.
	OpenPage func(address string) error
	// Soon names the agent that is about to be started beside the companion, which may never have been used here; "" for none.
	Soon string
	// Keep starts a process that keeps the door of connected CLIs at Leave (SPEC L-4): a companion with these Keeping and Door. It
	// begins when begin is called, or when this process ends. door is a duplicate of the listening socket, the callee's to
	// close; nil where the system hands none on. With a nil Keep nobody keeps.
	Keep func(k Keeping, door *os.File) (begin func(), err error)
	// Keeping makes this companion a keeper, and Door is its listening socket; nil where the port must be opened anew.
	Keeping *Keeping
	Door    *os.File
	// Log gets what happens; nil discards.
	Log *slog.Logger
}

func (o *Options) defaults() {
	if o.IDE == (discovery.IDE{}) {
		o.IDE = discovery.IDE{Name: "pollux", DisplayName: "Pollux"}
	}
	if o.PID == 0 {
		o.PID = os.Getpid()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// A Companion serves one workspace, from Start to Stop. Its methods may be
// called from any goroutine. Goroutines of its own: one for each listener,
// one that sweeps after the start, one that keeps the traces of life fresh;
// all are ended by Stop, which awaits them.
type Companion struct {
	o        Options
	started  time.Time
	work     *workspace.Workspace
	store    *state.Store
	reg      *review.Registry
	agents   *mcp.Server
	past     web.History       // nil when nothing is kept
	kept     *history.History  // likewise
	resume   *discovery.Resume // nil when nothing is kept for a next start
	journal  *journal.Journal  // nil without resume
	restored chan struct{}     // closed when what it held is open again
	record   discovery.Record  // what a next start may take over
	recorded []string          // the roots that it is found by
	resumed  bool
	door     net.Listener // the agents' port
	handed   atomic.Bool  // the next companion has been given it
	below    bool         // an agent has started this companion: it decides nothing

	socket string // for the agents that come in by a private one; "" when there is none

	others []control.Status // that ran before this one started, newest first

	ctx     context.Context // ends when Stop begins
	cancel  context.CancelFunc
	parts   atomic.Bool // every part has started
	tasks   sync.WaitGroup
	failed  chan error // the first part that ended by itself
	serving []func()   // the servers, each on its listener
	undo    []step     // what Stop does, in the order of starting
	once    sync.Once

	reviewers reviewers

	telling      sync.Mutex // guards the below; held while pages are told
	told         []control.Trouble
	lookingAgain *time.Timer

	pages      sync.Mutex  // guards the below; taken before mu
	page       *web.Server // nil until it is needed, where there is an Editor
	pageClosed bool
	browser    time.Time // when it was last opened

	mu    sync.Mutex // guards the below
	place *discovery.Place
	// hidden is why there is no file at place; aside is where it is instead, nil for nowhere.
	hidden error
	aside  *discovery.Place
	file   discovery.File
	// apart is the agent whose descendant this companion was last seen not to be. That stays so: a process gets no new ancestors.
	apart []proc.Info
	// aloof: no files lead to this keeper, as there are others.
	aloof bool
	// codex answers Codex; nil where nobody does, or another companion.
	codex *codex.Server
	// places are where CLIs of the other agents find this companion, by the agents' names.
	places map[string]*agent.Place
}

// A step of Stop gets what is left of the second.
type step struct {
	name string
	f    func(ctx context.Context) error
}

// Start starts a companion whole, or leaves nothing behind and says why not.
func Start(ctx context.Context, o Options) (*Companion, error) {
	o.defaults()
	c := &Companion{o: o, started: time.Now(), failed: make(chan error, 1), places: map[string]*agent.Place{}}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, start := range []func() error{
		c.startWorkspace,
		c.startCore,
		c.startHistory,
		c.startAgent,
		c.startPage,
		c.startJournal,
		c.startServing,
		c.startControl,
		c.startDiscovery,
	} {
		err := ctx.Err()
		if err == nil {
			err = start()
		}
		if err != nil {
			_ = c.Stop(ctx)
			return nil, err
		}
	}
	c.parts.Store(true)
	c.tellTroubles()
	c.startUpkeep()
	c.keep()
	if o.Editor != nil {
		c.whole() // CLIs are served; the editor's words wait
	}
	o.Log.Info("started", "port", c.file.Port, "roots", len(c.file.Roots), "took", time.Since(c.started))
	return c, nil
}

// onStop registers what undoes a step that has been taken.
func (c *Companion) onStop(name string, f func(context.Context) error) {
	c.undo = append(c.undo, step{name, f})
}

// Stop rejects every open diff and lets its session hear of it, then stops the parts in
// reverse. It returns within a second, also when ctx has ended long ago, and may be called again.
func (c *Companion) Stop(ctx context.Context) error {
	return c.stop(ctx, func() {
		if c.reg != nil {
			c.reg.Shut()
		}
	})
}

// stop ends everything once, what is open first, as shut says.
func (c *Companion) stop(ctx context.Context, shut func()) error {
	var errs []error
	c.once.Do(func() {
		begun := time.Now()
		c.cancel()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		shut() // before anything else: an undecided diff wedges its CLI
		for i := len(c.undo) - 1; i >= 0; i-- {
			errs = append(errs, c.stopPart(ctx, c.undo[i]))
		}
		errs = append(errs, c.stopPart(ctx, step{"goroutines", func(context.Context) error { c.tasks.Wait(); return nil }}))
		c.o.Log.Info("stopped", "took", time.Since(begun))
	})
	return errors.Join(errs...)
}

// stopPart gives a step the time that is left, and a moment if none is. One
// that hangs neither keeps the others from being taken nor the process.
func (c *Companion) stopPart(ctx context.Context, s step) error {
	done := make(chan error, 1)
	go func() { done <- s.f(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(stopAtLeast):
			err = errors.New("it did not stop in time")
		}
	}
	if err == nil {
		return nil
	}
	c.o.Log.Warn("stopping", "part", s.name, "err", err)
	return fmt.Errorf("stopping the companion's %s: %w", s.name, err)
}

// Failed hands out the error of a part that ended by itself, after which the
// companion should be stopped: by Leave, where that is ErrKept, ErrHandedOn or ErrStopped, which are no failures.
func (c *Companion) Failed() <-chan error { return c.failed }

// fail reports that a part has ended by itself.
func (c *Companion) fail(err error) {
	if err == nil || c.ctx.Err() != nil {
		return
	}
	select {
	case c.failed <- err:
	default:
	}
}
