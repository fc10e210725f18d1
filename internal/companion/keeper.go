package companion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// Times of a keeper (SPEC L-4).
const (
	// keepIdle is how long a keeper waits for a session. Agents come back within seconds, and a session that is gone had its
	// half minute of grace already.
	keepIdle = 25 * time.Second
	// leaveWithin bounds how long the end of an editor waits until the sessions' processes are known.
	leaveWithin = 300 * time.Millisecond
	// keepAtMost is how long a keeper lives, even with sessions.
	keepAtMost = 12 * time.Hour
	// handWithin is how long a companion that hands its door on may take to end.
	handWithin = 3 * time.Second
	// answerWithin is how long pollux stop waits for a CLI that is away. A CLI comes back after three seconds.
	answerWithin = 6 * time.Second
)

// A Keeping is what a keeper starts from (SPEC L-4): the workspace as it is now, and the record of the companion before it.
type Keeping struct {
	IDE    discovery.IDE   `json:"ide"`
	Roots  []string        `json:"roots"`
	Record control.Handing `json:"record"`
}

// Reasons for which a companion ends by itself; see Failed.
var (
	// ErrKept: the keeper has no session left, or its time is over.
	ErrKept = errors.New("there is nothing left to keep")
	// ErrHandedOn: the next companion has the door.
	ErrHandedOn = errors.New("another companion has taken over")
	// ErrStopped: a user called pollux stop.
	ErrStopped = errors.New("it was stopped by pollux stop")
)

var (
	errNoRecord = errors.New("the record of the companion before this one cannot be used")
	// errAgentsKeeper: only a person's editor gets a keeper.
	errAgentsKeeper = errors.New("a keeper does not start from an agent's own shell")
	errHasOwner     = errors.New("this companion belongs to the program that started it; quit that, or say :Pollux stop in the editor")
)

// Leave stops the companion when its editor has ended. When a connected session outlives the editor, Leave starts a keeper first and
// gives it the listening socket; open diffs then stay open (SPEC L-4). It returns within a second, as Stop does. The keeper begins
// only after this companion has stopped, so that two never write one record and journal. When no keeper can be started, Leave
// is Stop.
func (c *Companion) Leave(ctx context.Context) error {
	if c.handed.Load() {
		return c.stop(ctx, c.reg.Retire)
	}
	if !c.keeps() {
		return c.Stop(ctx)
	}
	door, err := duplicate(c.door)
	var begin func()
	if err == nil {
		begin, err = c.o.Keep(Keeping{IDE: c.o.IDE, Roots: c.work.Roots(), Record: c.handing()}, door)
	}
	if err != nil {
		c.o.Log.Warn("no keeper could be started, so that connected CLIs lose their companion", "err", err)
		return c.Stop(ctx)
	}
	defer begin()
	return c.stop(ctx, c.reg.Retire)
}

// keeps says whether this companion needs a keeper: one can be started, and a connected session outlives the editor.
func (c *Companion) keeps() bool {
	s := &c.o.Settings
	if c.o.Keep == nil || !s.Keep || !s.Resume || c.resume == nil || !c.parts.Load() || c.ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, leaveWithin)
	defer cancel()
	c.agents.Unknown(ctx) // the process of a session that has just begun is still being found
	return slices.ContainsFunc(c.agents.Sessions(), c.outlives)
}

// outlives says whether a session's CLI goes on without the editor. A CLI in a terminal of the editor's own does not.
func (c *Companion) outlives(s mcp.SessionInfo) bool {
	if s.PID == 0 {
		return true
	}
	editor := c.o.PID
	if c.o.Editor != nil && editor == os.Getpid() { // the editor has not said which process it is
		editor = os.Getppid()
	}
	_, lives := proc.Lookup(s.PID)
	return lives && !guard.Descends(s.PID, []proc.Info{{PID: editor}})
}

// handing names this companion's record, for the companion that takes over.
func (c *Companion) handing() control.Handing {
	return control.Handing{Editor: c.o.IDE.Name, Roots: c.recorded, Port: c.file.Port}
}

// keep ends a keeper once nobody needs it.
func (c *Companion) keep() {
	if c.o.Keeping == nil {
		return
	}
	c.tasks.Go(func() {
		if needless(c.ctx, c.agents.Watch, func() bool { return len(c.agents.Sessions()) > 0 }) {
			c.fail(ErrKept)
		}
	})
}

// needless waits until there have been no sessions for keepIdle, or keepAtMost is over; false when ctx ends first. watch calls its
// function, until cancelled, when sessions may have come or gone.
func needless(ctx context.Context, watch func(func()) (cancel func()), sessions func() bool) bool {
	wake := make(chan struct{}, 1)
	defer watch(func() { poke(wake) })()
	limit, idle := time.NewTimer(keepAtMost), time.NewTimer(keepIdle)
	defer limit.Stop()
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-limit.C:
			return true
		case <-idle.C:
			return true
		case <-wake:
			idle.Stop()
			if !sessions() {
				idle.Reset(keepIdle)
			}
		}
	}
}

// HandOver is part of control.Backend.
func (b backend) HandOver() (control.Handing, *os.File, func(), error) {
	c := b.c
	if c.o.Keeping == nil || !c.handed.CompareAndSwap(false, true) {
		return control.Handing{}, nil, nil, control.ErrNoKeeper
	}
	door, err := duplicate(c.door)
	if err != nil {
		c.handed.Store(false)
		return control.Handing{}, nil, nil, err
	}
	return c.handing(), door, func() { c.fail(ErrHandedOn) }, nil
}

// Stop is part of control.Backend.
func (b backend) Stop() (over func(), err error) {
	if b.c.o.Editor != nil || b.c.o.Soon != "" {
		return nil, errHasOwner
	}
	return func() { b.c.tasks.Go(b.c.stopAnswered) }, nil
}

// stopAnswered ends a companion when every agent with a proposal knows that it is rejected. That includes a CLI that is just
// coming back, and diffs that are just being restored.
func (c *Companion) stopAnswered() {
	c.whole()
	c.reg.Shut()
	ctx, cancel := context.WithTimeout(c.ctx, answerWithin)
	defer cancel()
	c.agents.Deliver(ctx)
	c.fail(ErrStopped)
}

// fromKeeper takes over the door of a keeper of this workspace, preferring a keeper of the same editor. It returns nil when there is none.
func (c *Companion) fromKeeper() (*discovery.Record, *os.File) {
	if !c.keeper() {
		return nil, nil
	}
	clients := control.List(c.ctx, c.o.Dirs.Run) // newest first
	defer func() {
		for _, client := range clients {
			client.Close()
		}
	}()
	slices.SortStableFunc(clients, func(a, b *control.Client) int {
		switch mine := c.o.IDE.Name; {
		case (a.Status.Editor == mine) == (b.Status.Editor == mine):
			return 0
		case a.Status.Editor == mine:
			return -1
		}
		return 1
	})
	for _, client := range clients {
		if !c.isKeeper(client.Status) || client.FromAgent(nil) { // an agent, not a person's editor, started this keeper
			continue
		}
		rec, door, err := c.takeFrom(client)
		if err == nil {
			return rec, door
		}
		c.o.Log.Warn("a keeper does not hand its door over", "keeper", client.Status.PID, "err", err)
	}
	return nil, nil
}

// isKeeper says whether a companion is a keeper, and all its folders lie in this workspace.
func (c *Companion) isKeeper(s control.Status) bool {
	return s.Keeper && len(s.Roots) > 0 && !slices.ContainsFunc(s.Roots, func(root string) bool { return !c.work.Holds(root) })
}

func (c *Companion) takeFrom(keeper *control.Client) (*discovery.Record, *os.File, error) {
	ctx, cancel := context.WithTimeout(c.ctx, handWithin)
	defer cancel()
	h, door, err := keeper.TakeOver(ctx)
	if err != nil {
		return nil, nil, err
	}
	rec, err := c.inherit(h)
	if door != nil && (err != nil || keeper.FromAgent(slices.Concat(slices.Collect(maps.Values(rec.Sessions))...))) {
		door.Close() // an agent's process could keep listening on this socket, and answer the CLI in the user's place
		door = nil
	}
	c.others = slices.DeleteFunc(c.others, func(s control.Status) bool { return s.PID == keeper.Status.PID })
	return rec, door, err
}

// inherit claims the record of a companion that hands its door on. It waits, at most handWithin, until that companion has released the record.
func (c *Companion) inherit(h control.Handing) (*discovery.Record, error) {
	deadline := time.Now().Add(handWithin)
	for {
		rec, err := c.claimPort(h)
		if !errors.Is(err, discovery.ErrLive) || time.Now().After(deadline) {
			return rec, err
		}
		select {
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// claimPort claims the record of a port.
func (c *Companion) claimPort(h control.Handing) (*discovery.Record, error) {
	for slot := range discovery.Slots {
		r := discovery.NewResume(c.o.Dirs.State, h.Editor, h.Roots, slot)
		if r.Port() != h.Port {
			continue
		}
		if err := r.Claim(); err != nil {
			return nil, err
		}
		rec, err := r.Load(time.Now())
		if err == nil && rec == nil {
			err = errNoRecord
		}
		if err == nil {
			err = c.own(r, h, rec)
		}
		if err != nil {
			r.Release()
			return nil, err
		}
		c.onStop("claim", func(context.Context) error { c.resume.Release(); return nil })
		return rec, nil
	}
	return nil, errNoRecord
}

// own makes a claimed record this companion's. A record of another editor, or of other folders, is moved to the place where this
// companion's next start looks for it.
func (c *Companion) own(r *discovery.Resume, h control.Handing, rec *discovery.Record) error {
	if h.Editor == c.o.IDE.Name && sameSet(h.Roots, c.work.Roots()) {
		c.resume, c.recorded = r, h.Roots
		return nil
	}
	if c.o.Keeping != nil { // the editor's folders have changed; its next start looks for the record by the first ones
		c.resume, c.recorded = r, h.Roots
		return nil
	}
	for slot := range discovery.Slots {
		mine := discovery.NewResume(c.o.Dirs.State, c.o.IDE.Name, c.work.Roots(), slot)
		if mine.Claim() != nil {
			continue
		}
		if old, err := mine.Load(time.Now()); old != nil || err != nil && !errors.Is(err, discovery.ErrDamaged) || mine.HasJournal() {
			mine.Release() // sessions of that record may still come back
			continue
		}
		if err := mine.Inherit(r, *rec); err != nil {
			mine.Release()
			return err
		}
		r.Release()
		c.resume, c.recorded = mine, c.work.Roots()
		return nil
	}
	return discovery.ErrLive
}

// listenDoor goes on with a listening socket that was handed on, when it has the record's port.
func listenDoor(door *os.File, port int) (net.Listener, error) {
	defer door.Close()
	ln, err := net.FileListener(door)
	if err != nil {
		return nil, err
	}
	if at, ok := ln.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() || at.Port != port {
		ln.Close()
		return nil, fmt.Errorf("the socket that was handed on is at %v, and not at port %d", ln.Addr(), port)
	}
	return ln, nil
}

// stepAside leaves new CLIs to the companions of this workspace that have an editor: agents find a keeper only when there is no
// other. The caller does not hold c.mu.
func (c *Companion) stepAside() {
	if c.o.Keeping == nil {
		return
	}
	c.lookAround()
	aside := c.sharing() != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aloof = aside
}
