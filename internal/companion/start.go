package companion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/workspace"
)

func (c *Companion) startWorkspace() (err error) {
	c.work, err = workspace.New(c.o.Roots, &workspace.Options{
		ShareOutside: c.o.Settings.ShareOutside,
		NeverShare:   c.o.Settings.Ignore,
		Saves:        c.savesFolder(),
		Deniers:      c.deniers(),
		Withholds:    c.withholds,
	})
	if err != nil {
		return err
	}
	// Refuse folders that the discovery file cannot express before anything runs.
	if _, err := discovery.WorkspacePath(c.work.Roots()); err != nil {
		return err
	}
	return nil
}

// savesFolder holds notes of saves that are under way, for whichever companion starts next.
func (c *Companion) savesFolder() string { return filepath.Join(c.o.Dirs.State, "saves") }

// withholds reports a folder that is open but not shared (SPEC C-8).
func (c *Companion) withholds(w workspace.Withheld) {
	c.o.Log.Warn("a folder is not shared", "folder", w.Folder, "file", w.File, "problem", w.Problem)
	if c.o.Editor != nil {
		c.o.Editor.Complain(w.String())
	}
	go c.tellTroubles() // on a goroutine: the caller is just making the context
}

func (c *Companion) startCore() error {
	c.store = state.New(&state.Options{Keep: c.work.Sharing, Denied: c.work.Denying, Deniable: c.work.Deniable(), LentTo: c.lentTo()})
	c.store.SetRoots(c.work.Roots())
	c.startPause()
	if err := c.startShares(); err != nil {
		return err
	}
	c.onStop("state", func(context.Context) error { c.store.Shut(); return nil })
	o := review.Options{View: lateView{c}, Files: mcp.Files{}, AlwaysAsk: c.o.Keeping != nil}
	if c.o.Editor != nil {
		o.View, o.ShowTimeout = c.o.Editor, showWithin
	}
	c.reg = review.New(o)
	c.followReviews()
	c.followFiles()
	if mode := review.Mode(c.o.Settings.DiffMode); mode != "" && mode != review.Ask && c.o.Keeping == nil {
		c.reg.SetRule(review.Rule{Mode: mode})
	}
	return nil
}

// startAgent listens on the port of the last companion of this workspace, if it may (SPEC A-1).
func (c *Companion) startAgent() error {
	c.lookAround() // before this companion has a socket of its own, which it would find
	if c.below = c.marked(); c.below {
		c.o.Log.Warn("started from an agent's shell, so that no diffs are shown here")
	}
	old, ln, resumed, err := c.settleDown()
	if err != nil {
		return err
	}
	c.door = ln
	if old != nil && !resumed { // the port is another one, and an agent counts as long as it lives
		c.meetAgain(old)
	}
	rec := discovery.NewRecord()
	if resumed {
		rec, c.resumed = old.Next(), true
		c.removeOf(old)
	}
	for _, a := range agent.All() {
		if a.Door != nil {
			rec.Furnish(a.Name)
		}
	}
	rec.Port, rec.Namespaces = ln.Addr().(*net.TCPAddr).Port, proc.Namespaces()
	c.file = discovery.File{Port: rec.Port, Roots: c.work.Roots(), Token: rec.Token, IDE: &c.o.IDE}
	c.record = rec
	c.agents = c.newServer(rec)
	c.attach(c.guard(ln), c.agents)
	if err := c.listenContainer(rec.Port); err != nil {
		return err
	}
	c.listenPrivate()
	c.onStop("agent", c.agents.Shutdown)
	return nil
}

// settleDown takes over from the companion before this one, or opens a port of its own. A keeper and the next companion
// hand the door and its record on one after the other. A companion that starts in between finds the record, but not the port. It leaves the
// record to them and looks again, as long as they may take: with another port it could only drop the proposals (SPEC L-4).
func (c *Companion) settleDown() (old *discovery.Record, ln net.Listener, resumed bool, err error) {
	deadline := time.Now().Add(claimWithin + handWithin)
	for {
		before := c.keeper()
		old, door, err := c.predecessor()
		if err != nil {
			return nil, nil, false, err
		}
		ln, resumed, err := c.listenAgent(old, door)
		again := c.resume != nil && (old != nil && companionListens(c.ctx, old.Port) || old == nil && !before && c.keeper())
		if err != nil || resumed || !again || c.o.Port != 0 || time.Now().After(deadline) {
			return old, ln, resumed, err
		}
		ln.Close()
		c.resume.Release()
		c.resume = nil
		select {
		case <-c.ctx.Done():
			return nil, nil, false, c.ctx.Err()
		case <-time.After(50 * time.Millisecond): // the other one asks for the record every 10 ms
		}
		c.lookAround()
	}
}

// keeper says whether a keeper of this workspace was running when this companion last looked around.
func (c *Companion) keeper() bool { return slices.ContainsFunc(c.others, c.isKeeper) }

// companionListens says whether a companion of this user's listens on a port of loopback: any program of the user's where the system does
// not say which.
func companionListens(ctx context.Context, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := proc.DialOwn(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	conn.Close()
	pids := proc.Listeners(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)))
	return len(pids) == 0 || slices.ContainsFunc(pids, guard.IsPollux)
}

// listenPrivate opens the private socket. A failure is only logged: without the socket, some agents do not find this companion, but the others do.
func (c *Companion) listenPrivate() {
	ln, err := mcp.ListenPrivate(c.o.Dirs.Run, c.o.Log)
	if err != nil {
		c.o.Log.Warn("some agents do not find this companion", "err", err)
		return
	}
	c.socket = ln.Addr().String()
	c.attach(ln, c.agents)
}

// predecessor returns the companion to take over from: the one that started this keeper, a running keeper, or one that has ended; nil
// for none. door is its listening socket, when that was handed on.
func (c *Companion) predecessor() (old *discovery.Record, door *os.File, err error) {
	if k := c.o.Keeping; k != nil {
		c.o.Log.Info("keeping", "port", k.Record.Port)
		if old, err = c.inherit(k.Record); err == nil && (c.below || c.mayInherit(old) != nil) {
			err = errAgentsKeeper
		}
		return old, c.o.Door, err
	}
	if !c.o.Settings.Resume || c.below {
		return nil, nil, nil
	}
	if old, door = c.fromKeeper(); old != nil {
		return old, door, nil
	}
	return c.takeOver(), nil, nil
}

// sharing returns a companion that serves this workspace too and is no keeper; nil when there is none.
func (c *Companion) sharing() *control.Status {
	for i := range c.others {
		if o := &c.others[i]; !o.Keeper && o.PID != c.o.PID && sameSet(o.Roots, c.work.Roots()) {
			return &c.others[i]
		}
	}
	return nil
}

// lookAround finds the companions that run already.
func (c *Companion) lookAround() {
	c.others = nil
	var clients []*control.Client
	clients, c.silent = control.ListAll(c.ctx, c.o.Dirs.Run)
	for _, client := range clients {
		c.others = append(c.others, client.Status)
		client.Close()
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// listenAgent opens the agents' port on loopback (SPEC T-2): the user's, or else the old one, or else any.
func (c *Companion) listenAgent(old *discovery.Record, door *os.File) (ln net.Listener, resumed bool, err error) {
	if door != nil {
		if ln, err = listenDoor(door, old.Port); err == nil && (c.o.Port == 0 || c.o.Port == old.Port) {
			return ln, true, nil
		}
		if err == nil {
			ln.Close()
		} else {
			c.o.Log.Warn("the socket that was handed on is not used", "err", err)
		}
	}
	if old != nil && (c.o.Port == 0 || c.o.Port == old.Port) {
		if ln, err := c.listen("127.0.0.1", old.Port); err == nil {
			return ln, true, nil
		}
		c.o.Log.Info("not resuming: the old port is taken", "port", old.Port)
	}
	if c.o.Keeping != nil {
		return nil, false, errNoRecord
	}
	ln, err = c.listen("127.0.0.1", c.o.Port)
	return ln, false, err
}

func (c *Companion) listen(host string, port int) (net.Listener, error) {
	network := "tcp4"
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		network = "tcp6"
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // one path leads here, so several bring nothing
	ln, err := config.Listen(c.ctx, network, net.JoinHostPort(host, strconv.Itoa(port)))
	if err == nil {
		return ln, nil
	}
	var errno syscall.Errno
	reason := err
	if errors.As(err, &errno) {
		reason = errno
	}
	what := fmt.Sprintf("port %d", port)
	if port == 0 {
		what = "a port"
	}
	hint := "choose another with --port, or leave it out to take any that is free"
	if errno == syscall.EADDRNOTAVAIL {
		hint = "name an address that this machine has"
	}
	return nil, fmt.Errorf("%s cannot be opened on %s: %w; %s", what, host, reason, hint)
}

// listenContainer also serves CLIs in containers, on the same port of one more address (SPEC T-8).
func (c *Companion) listenContainer(port int) error {
	addr := c.o.Settings.ContainerAddress
	if addr == "" {
		return nil
	}
	ln, err := c.listen(addr, port)
	if err != nil {
		return fmt.Errorf("the companion cannot be reached from containers: %w", err)
	}
	c.attach(ln, c.agents)
	return nil
}

// guard keeps other users' connections off a listener on loopback (SPEC A-5).
func (c *Companion) guard(ln net.Listener) net.Listener {
	if c.o.Settings.AdmitOtherUsers {
		return ln
	}
	return mcp.OwnUser(ln, c.o.Log)
}

// attach lets s serve ln once every part has started. Connections before that wait in the
// listener's queue.
func (c *Companion) attach(ln net.Listener, s server) {
	c.serving = append(c.serving, func() { c.fail(s.Serve(ln)) })
	c.onStop("listener", func(context.Context) error { ln.Close(); return nil }) // closes ln when Serve never ran
}

func (c *Companion) startServing() error {
	for _, serve := range c.serving {
		c.tasks.Go(serve)
	}
	return nil
}

func (c *Companion) startPage() error {
	if c.o.Editor != nil {
		return c.attachEditor()
	}
	if c.o.Keeping != nil {
		return c.lazyPage()
	}
	ln, err := c.listenPage()
	if err != nil {
		return err
	}
	page := c.newPage(c.record)
	c.page = page
	c.record.PagePort = ln.Addr().(*net.TCPAddr).Port
	c.record.PageKeys = page.Keys()
	c.attach(c.guard(ln), page)
	c.onStop("page", page.Shutdown)
	unwatch := c.agents.Watch(page.SessionsChanged)
	c.onStop("sessions", func(context.Context) error { unwatch(); return nil })
	return nil
}

// listenPage opens the page's port: the one of the companion before this one, if it may.
func (c *Companion) listenPage() (net.Listener, error) {
	port := c.record.PagePort
	ln, err := c.listen("127.0.0.1", port)
	if err != nil && port != 0 {
		c.record.PageKeys = nil // a page knows only one address, so old keys are useless on a new port
		ln, err = c.listen("127.0.0.1", 0)
	}
	return ln, err
}

// startControl opens the control channel. A failure is only logged: pollux's other commands do not find this
// companion then, but the CLI and the page do.
func (c *Companion) startControl() error {
	s, err := control.Listen(c.o.Dirs.Run, backend{c}, c.o.Log)
	if err != nil {
		c.o.Log.Warn("other pollux commands cannot reach this companion", "err", err)
		return nil
	}
	c.channel.Store(s.PointFrom(c.o.Dirs.Pointers()))
	c.onStop("control", func(context.Context) error { s.Close(); return nil })
	return nil
}

// startDiscovery publishes the companion. It comes last: a CLI that finds the file must find everything else.
func (c *Companion) startDiscovery() error {
	c.elect()
	c.mu.Lock() // a page for the editor may be starting at the same time
	defer c.mu.Unlock()
	c.place = discovery.NewPlace(discovery.Dir(), c.o.PID, c.file.Port)
	c.onStop("discovery", func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		errs := []error{c.place.Remove()}
		for _, s := range c.askers {
			s.Close()
		}
		if c.aside != nil {
			errs = append(errs, c.aside.Remove())
		}
		for _, p := range c.places {
			errs = append(errs, p.Remove())
		}
		return errors.Join(errs...)
	})
	if c.resume != nil {
		c.save("a restart will not resume")
	}
	c.followSessions()
	c.followShares()
	c.followRules()
	c.aloof = c.o.Keeping != nil && c.sharing() != nil
	return c.publish(&c.file)
}

// followSessions keeps the processes of sessions in the record, until Stop. Only those processes may come back to the next companion
// with this one's token (SPEC A-1).
func (c *Companion) followSessions() {
	if c.resume == nil {
		return
	}
	wake := make(chan struct{}, 1)
	unwatch := c.agents.Watch(func() { poke(wake) })
	c.onStop("sessions' processes", func(context.Context) error {
		unwatch()
		c.keepSessions()
		return nil
	})
	c.tasks.Go(func() {
		for c.await(wake, keepAfter) {
			c.keepSessions()
		}
	})
}

func (c *Companion) keepSessions() {
	known, floor, met := c.agents.Known(), c.agents.Floor(), c.met.All()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resume == nil || floor == c.record.Floor && maps.EqualFunc(known, c.record.Sessions, slices.Equal) && slices.Equal(met, c.record.Met) {
		return
	}
	c.record.Sessions, c.record.Floor, c.record.Met = known, floor, met
	c.save("a restart will not know the sessions' processes")
}

// save writes the record for the next start. A failure becomes trouble, which ends when touch has saved it. The caller holds c.mu.
func (c *Companion) save(otherwise string) {
	if c.unsaved = c.resume.Save(c.record); c.unsaved != nil {
		c.o.Log.Warn(otherwise, "err", c.unsaved)
	}
}

// removeOf removes the discovery file of the companion that this one takes over from.
func (c *Companion) removeOf(old *discovery.Record) {
	if old.PID == os.Getpid() || proc.Same(old.PID, old.Start) {
		return
	}
	for _, dir := range []string{discovery.Dir(), discovery.DirIn(c.privateTemp())} {
		_ = os.Remove(discovery.NewPlace(dir, old.PID, old.Port).Path())
	}
}

// startUpkeep removes files of dead companions, once the first CLI has had its answers. Then it shows every minute that this
// companion lives: to the next companion, and to programs that clean the temporary folder.
func (c *Companion) startUpkeep() {
	sweepers := []discovery.Sweeper{{Dir: discovery.Dir(), Keep: c.place.Path(), OwnPort: c.file.Port}}
	private := discovery.Sweeper{Dir: discovery.DirIn(c.privateTemp()), OwnPort: c.file.Port}
	c.mu.Lock()
	if c.aside != nil {
		private.Keep = c.aside.Path()
	}
	c.mu.Unlock()
	sweepers = append(sweepers, private)
	c.tasks.Go(func() {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(upkeepAfter):
		}
		c.electAndPublish() // another may have started at the same time
		c.tellTroubles()
		for _, s := range sweepers {
			if removed := s.Sweep(c.ctx); len(removed) > 0 {
				c.o.Log.Info("removed the files of companions that are gone", "files", removed)
			}
		}
		for _, a := range agent.All() {
			a.Sweep()
		}
		for _, dir := range c.o.Dirs.Run {
			mcp.SweepPrivate(dir)
		}
		if removed := workspace.SweepSaves(c.savesFolder()); len(removed) > 0 {
			c.o.Log.Info("removed what saves that were interrupted have left", "files", removed)
		}
		if c.resume != nil {
			c.resume.Prune(time.Now())
		}
		if c.kept != nil {
			c.kept.Prune()
		}
		_ = proc.DropCode() // a failure costs only memory
	})
	c.tasks.Go(func() {
		tick := time.NewTimer(mcp.NextBeat(time.Now(), discovery.TouchEvery))
		defer tick.Stop()
		for {
			select {
			case <-c.ctx.Done():
				return
			case now := <-tick.C:
				tick.Reset(mcp.NextBeat(now, discovery.TouchEvery))
				c.stepAside()
				c.elect()
				c.touch(now)
				c.askShares()
				c.tellTroubles()
			}
		}
	})
}

func (c *Companion) touch(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resume != nil && (c.unsaved != nil || c.resume.Touch(now) != nil) { // somebody may have removed the folder
		if c.unsaved = c.resume.Renew(); c.unsaved == nil {
			c.save("a restart will not resume")
		}
	}
	if c.ctx.Err() != nil {
		return
	}
	if c.aloof {
		_ = c.publish(&c.file)
		return
	}
	c.announce(&c.file)
	if c.hidden == nil && os.Chtimes(c.place.Path(), now, now) == nil {
		return
	}
	_ = c.publish(&c.file) // cannot fail: the file has been encoded before
}
