// Package companion is one running companion. It starts the parts in order, so that
// a CLI that finds it finds it whole. It stops them in reverse within a second, with
// every open diff answered first (SPEC L-1 to L-3).
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
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/past"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/remind"
	"github.com/pollux-companion/pollux/internal/settings"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// stopWithin bounds Stop (SPEC L-1 allows a second for all of it).
const stopWithin = 800 * time.Millisecond

// upkeepAfter is how long after its start a companion looks for files of dead companions.
const upkeepAfter = 300 * time.Millisecond

// keepAfter is how long the record waits after a session's process was found, so that many sessions cost one write.
const keepAfter = 20 * time.Millisecond

// stopAtLeast is the time that a part gets when other parts have used up stopWithin.
const stopAtLeast = 20 * time.Millisecond

// claimWithin is how long a start waits for a stopping companion of the same workspace.
const claimWithin = stopWithin + 400*time.Millisecond

// Options configure a companion. Dirs and Roots are needed, the rest has defaults.
type Options struct {
	Dirs     settings.Dirs
	Settings settings.Settings
	// Roots are the workspace's folders; they are made absolute and canonical.
	Roots []string
	// IDE is how the companion introduces itself; pollux itself when zero.
	IDE discovery.IDE
	// PID is the editor's process, for the name of the discovery file (SPEC D-2); 0 means
	// this process.
	PID int
	// Version is pollux's own.
	Version string
	// Port is the agents' port, when the user insists on one; with 0, A-1 or the system chooses.
	Port int
	// Editor is the process of an editor that shows the diffs. nil: the page does.
	Editor Editor
	// NewPage makes the page.
	NewPage func(PageOptions) Page
	// OpenPage opens an address of the page in the user's browser, for what an editor
	// cannot show; nil when no browser should open.
	OpenPage func(address string) error
	// Soon names the agent that will be started beside the companion, which may never have been used on this machine; "" for none.
	Soon string
	// Keep starts a process that serves the port of connected CLIs after Leave (SPEC L-4): a companion with these Keeping and Door. That
	// process goes to work when begin is called, or when this process ends. door is a duplicate of the listening socket, which Keep must
	// close; nil where the system cannot pass one on. With a nil Keep, nothing keeps the sessions.
	Keep func(k Keeping, door *os.File) (begin func(), err error)
	// Keeping makes this companion a keeper. Door is its listening socket; nil where it must open the port anew.
	Keeping *Keeping
	Door    *os.File
	// Log gets the companion's events; nil discards them.
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

// A Companion serves one workspace, from Start to Stop. Its methods may be called
// from any goroutine. Its own goroutines are one for each listener, one that sweeps
// after the start, one that keeps the traces of life fresh, and followers of files
// and reviews. Stop ends and awaits them all.
type Companion struct {
	o        Options
	started  time.Time
	work     *workspace.Workspace
	store    *state.Store
	reg      *review.Registry
	agents   *mcp.Server
	running  atomic.Pointer[running]   // see lookRunning
	above    above                     // agents that count only as long as their go-between lives
	plain    atomic.Pointer[proc.Info] // the CLI that was last found not to be branded; its ancestors stay the same
	kinAt    atomic.Int64              // when all processes were looked at for a CLI's kin
	setters  proc.Set                  // who has set rules, with all above them
	met      proc.Set                  // the processes of all agents that have connected, in earlier lives too
	kept     *past.History             // nil when no history is kept
	resume   *discovery.Resume         // nil when nothing is kept for the next start
	journal  *past.Journal             // nil without resume
	unread   atomic.Pointer[error]     // why a diff of the journal is missing; nil when none is
	damaged  error                     // why the record beside the journal could not be used; nil when it could, or the journal has nothing
	restored chan struct{}             // closed when the diffs of the journal are open again
	record   discovery.Record          // what a next start may take over
	recorded []string                  // the roots that it is found by
	resumed  bool
	door     net.Listener // the agents' port
	handed   atomic.Bool  // the next companion has the door
	below    bool         // an agent started this companion, so it decides nothing

	channel atomic.Pointer[control.Server] // nil until it has started, or when it could not

	socket string // for the agents that come in by a private one; "" when there is none

	others []control.Status // companions that ran before this one, newest first
	silent []control.Silent // the ones among them that did not answer

	ctx     context.Context // ends when Stop begins
	cancel  context.CancelFunc
	parts   atomic.Bool // every part has started
	tasks   sync.WaitGroup
	failed  chan error // the error of the first part that ended by itself
	serving []func()   // the servers, each on its listener
	undo    []step     // what Stop does, in the order of starting
	once    sync.Once

	reviewers reviewers
	reminder  *remind.Reminder // nil when the user wants none

	electing sync.Mutex // held by elect

	shares     *settings.Shares
	wakeShares chan struct{}
	wakeRules  chan struct{} // of followRules

	telling      sync.Mutex // guards the below; held while pages are told
	told         []control.Trouble
	lookingAgain *time.Timer

	pages      sync.Mutex // guards the below; taken before mu
	page       Page       // nil until it is needed, where there is an Editor
	pageClosed bool
	browser    time.Time // when it was last opened

	mu    sync.Mutex // guards the below
	place *discovery.Place
	// hidden is why there is no file at place; aside is the file's other place, nil for none.
	hidden error
	aside  *discovery.Place
	file   discovery.File
	// apart is the agent that was last seen not to have started this companion. That cannot change: a process gets no new ancestors.
	apart []proc.Info
	// unsaved is why the record for the next start is not on the disk; nil when it is, or none is wanted.
	unsaved error
	// aloof: this companion is a keeper and has withdrawn its files, because others serve the workspace.
	aloof bool
	// elected is the companion that serves the sole agents instead of this one; nil for none. See elect.
	elected *control.Client
	// keepers are told what this one's user looks at; by the paths of their sockets.
	keepers map[string]*keptBy
	// elsewhere are the proposals that another companion shows its user.
	elsewhere map[*review.Diff]*control.Client
	// silentOnes were elected, and do not answer now.
	silentOnes []*control.Client
	// askers answer the agents that ask on a socket of their own, by the agents' names; none where another companion answers.
	askers map[string]agent.Answerer
	// places are where CLIs of the other agents find this companion, by the agents' names.
	places map[string]*agent.Place
}

// A step of Stop gets the time that is left of stopWithin.
type step struct {
	name string
	f    func(ctx context.Context) error
}

// Start starts a whole companion, or leaves nothing behind and says why. The order
// matters: the port is claimed before diffs of an earlier companion are restored, CLIs
// are served only when every part is there, and the discovery file comes last.
func Start(ctx context.Context, o Options) (*Companion, error) {
	o.defaults()
	c := &Companion{o: o, started: time.Now(), failed: make(chan error, 1), places: map[string]*agent.Place{}, askers: map[string]agent.Answerer{}, keepers: map[string]*keptBy{}, elsewhere: map[*review.Diff]*control.Client{}, wakeRules: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, start := range []func() error{
		c.startWorkspace,
		c.startCore,
		c.startHistory,
		c.startAgent,
		c.startPage,
		c.startJournal,
		c.startReminder,
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
		c.whole() // CLIs are served already; only the editor's messages wait
	}
	o.Log.Info("started", "port", c.file.Port, "roots", len(c.file.Roots), "took", time.Since(c.started))
	return c, nil
}

// onStop registers how to undo a step that was just taken.
func (c *Companion) onStop(name string, f func(context.Context) error) {
	c.undo = append(c.undo, step{name, f})
}

// Stop rejects every open diff and tells its session, then stops the parts in reverse. It returns
// within a second, even when ctx has ended long ago. It may be called again, and then does nothing.
func (c *Companion) Stop(ctx context.Context) error {
	return c.stop(ctx, func() {
		if c.reg != nil {
			c.reg.Shut()
		}
	})
}

// stop ends everything once. It calls shut first, which settles or retires the open diffs.
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

// stopPart gives a step the time that is left, at least stopAtLeast. A step that hangs
// keeps neither the other steps nor the process from ending; its goroutine is left behind.
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

// Failed returns the channel for the error of a part that ended by itself. After one,
// stop the companion. ErrKept, ErrHandedOn and ErrStopped are no failures: call Leave then.
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
