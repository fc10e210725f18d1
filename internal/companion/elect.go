package companion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/settings"
)

// electAgainAfter is how long after a lost companion the next one is elected.
const electAgainAfter = 50 * time.Millisecond

// lendWithin bounds one message to the elected companion, answersWithin the first one.
const (
	lendWithin    = 5 * time.Second
	answersWithin = 2 * time.Second
)

// sole lists the agents that connect to no companion, or always to the same, where several serve their folder. Of pollux's companions
// with overlapping folders, one is elected to serve them all; see elect.
func sole() []string { return agent.Names(func(a agent.Agent) bool { return a.Sole }) }

// elect finds out which companion serves the sole agents: of all with overlapping folders the one whose process began first, keepers last.
// The others withdraw their files from these agents, and lend the elected one what their users look at, so that it speaks for the editor
// that was used last. They lend it to keepers as well, whose agents have no other editor; see forward. When it ends, the connection to it ends, and they elect again. A companion that an agent has started is elected by
// nobody, and one that was started for its own agent (pollux run) takes no part. The caller does not hold c.mu.
func (c *Companion) elect() {
	c.electing.Lock()
	defer c.electing.Unlock()
	if c.o.Soon != "" || c.ctx.Err() != nil {
		return
	}
	own := ""
	if channel := c.channel.Load(); channel != nil {
		own = channel.Path()
	}
	clients := control.Others(c.ctx, c.o.Dirs.Run, own)
	c.mu.Lock()
	before := c.elected
	c.mu.Unlock()
	others := c.beside(clients)
	first := c.choose(others, before)
	for _, client := range clients {
		if client != first && !(slices.Contains(others, client) && c.lendToKeeper(client)) {
			client.Close()
		}
	}
	c.mu.Lock()
	if first != nil && c.elected != nil && c.elected.Path() == first.Path() {
		c.mu.Unlock()
		first.Close()
		return
	}
	before, c.elected = c.elected, first
	if before != nil && !slices.ContainsFunc(clients, func(o *control.Client) bool { return o.Path() == before.Path() }) {
		c.awaits(before) // it hangs, or has just ended
		before = nil
	}
	c.mu.Unlock()
	if before != nil {
		before.Close()
	}
	if first != nil {
		c.o.Log.Info("another companion serves agents that take one only", "companion", first.Status.PID, "agents", sole())
		c.tasks.Go(func() { c.lendElected(first) })
		if c.o.Keeping != nil && !first.Status.Keeper {
			c.tasks.Go(func() { c.forward(first) })
		}
	}
}

// beside returns the companions with overlapping folders. Whatever one says of itself, it must not run below an agent.
func (c *Companion) beside(clients []*control.Client) []*control.Client {
	if len(clients) == 0 {
		return nil
	}
	known := c.knownAgents(c.ctx)
	if guard.Same(known) { // pollux conform may be above the companion that it tries
		known = nil
	}
	return slices.DeleteFunc(control.Persons(c.ctx, clients, known), func(o *control.Client) bool {
		return o.Status.Alone || !c.work.Overlaps(o.Status.Roots)
	})
}

// choose returns the companion to be elected; nil for this one. Whatever it says of itself, it must not have begun later than others, and it
// must take what is lent.
func (c *Companion) choose(others []*control.Client, elected *control.Client) *control.Client {
	mine := seniority{keeper: c.o.Keeping != nil, began: proc.Self(), started: c.started, pid: c.o.PID}
	others = slices.DeleteFunc(slices.Clone(others), func(o *control.Client) bool { return !c.below && seniorityOf(o).compare(mine) >= 0 })
	slices.SortFunc(others, func(a, b *control.Client) int { return seniorityOf(a).compare(seniorityOf(b)) })
	for _, o := range others {
		if elected != nil && elected.Path() == o.Path() || c.answers(o) {
			return o
		}
	}
	return nil
}

// answers says whether a companion takes, or refuses, what is lent. One that does neither serves nobody.
func (c *Companion) answers(o *control.Client) bool {
	ctx, cancel := context.WithTimeout(c.ctx, answersWithin)
	defer cancel()
	_, err := o.Lend(ctx, c.store.Snapshot().Bare(), false)
	return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, control.ErrStopped)
}

// electAndPublish elects, and writes or removes the files that follow from it.
func (c *Companion) electAndPublish() {
	c.elect()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil && !c.aloof {
		c.announce(&c.file)
	}
}

// awaits notes a companion that was elected and does not answer now, and elects again once it does, or has ended. The question that it
// has not answered waits for it, so that nobody needs to ask again. The caller holds c.mu.
func (c *Companion) awaits(silent *control.Client) {
	c.silentOnes = append(c.silentOnes, silent)
	c.tasks.Go(func() {
		_, _ = silent.Lend(c.ctx, c.store.Snapshot().Bare(), false)
		silent.Close()
		c.mu.Lock()
		c.silentOnes = slices.DeleteFunc(c.silentOnes, func(o *control.Client) bool { return o == silent })
		c.mu.Unlock()
		if c.ctx.Err() == nil {
			c.electAndPublish()
			c.tellTroubles()
		}
	})
	go c.tellTroubles() // on a goroutine: it takes c.mu
}

// silentTrouble says that the companion that was elected hangs, or is stopped; nil when none does.
func (c *Companion) silentTrouble() *control.Trouble {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.silentOnes) == 0 {
		return nil
	}
	pid := c.silentOnes[len(c.silentOnes)-1].Status.PID
	return &control.Trouble{
		ID:   silentTroubleID,
		What: fmt.Sprintf("process %d, which serves Claude Code, opencode and Codex here, does not answer", pid),
		Why:  "this companion serves them as well now, but they find two, and may connect to neither, or wait for the other",
		Do:   fmt.Sprintf("take it up again (fg, or kill -CONT %d), or end it (kill -9 %d)", pid, pid),
	}
}

// silentTroubleID is the ID of silentTrouble.
const silentTroubleID = "silent"

// A seniority orders companions: who is first is elected.
type seniority struct {
	keeper  bool
	began   proc.Stamp // of its process, as the system says
	started time.Time  // as it says itself, for several of one process
	pid     int
}

func seniorityOf(c *control.Client) seniority {
	return seniority{c.Status.Keeper, c.Began(), c.Status.Started, c.Status.PID}
}

func (s seniority) compare(o seniority) int {
	switch {
	case s.keeper != o.keeper && o.keeper:
		return -1
	case s.keeper != o.keeper:
		return 1
	}
	return cmp.Or(cmp.Compare(s.began, o.began), s.started.Compare(o.started), cmp.Compare(s.pid, o.pid))
}

// lendable returns what this one's user looks at, as far as one of these agents may be told.
func (c *Companion) lendable(agents []string) *state.Snapshot {
	snap := c.store.Snapshot()
	if !slices.ContainsFunc(agents, func(name string) bool { return !slices.Contains(snap.Withheld, name) }) {
		return snap.Bare()
	}
	return snap
}

// lendElected tells the elected companion what this one's user looks at, until it ends or hangs, another is elected, or Stop.
func (c *Companion) lendElected(to *control.Client) {
	if hangs := c.lend(to, sole()); c.ctx.Err() == nil {
		c.withoutElected(to, hangs)
	}
}

// lend tells a companion what this one's user looks at, as far as one of these agents may be told, until that companion ends or hangs, is
// found to be an agent's, or Stop. After Stop it closes the connection.
func (c *Companion) lend(to *control.Client, agents []string) (hangs bool) {
	changed := make(chan struct{}, 1)
	cancel := c.store.Subscribe(func(*state.Snapshot) { poke(changed) })
	defer cancel()
	last := &state.Snapshot{}
	for {
		if len(c.beside([]*control.Client{to})) == 0 { // agents have come since it was chosen
			return false
		}
		now := c.lendable(agents)
		ctx, done := context.WithTimeout(c.ctx, lendWithin)
		hear, err := to.Lend(ctx, now, !last.SameLook(now))
		done()
		if to.Status.Keeper && err == nil {
			c.hears(to, hear)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return true
		}
		if err != nil && c.ctx.Err() == nil {
			c.o.Log.Info("another companion does not hear what this one's user looks at", "companion", to.Status.PID, "err", err)
		}
		last = now
		select {
		case <-changed:
		case <-c.ctx.Done():
			to.Close()
			return false
		case <-to.Gone():
			return false
		}
	}
}

// withoutElected elects again after the elected companion has ended, or hangs.
func (c *Companion) withoutElected(elected *control.Client, hangs bool) {
	c.mu.Lock()
	lost := c.elected == elected
	if lost {
		c.elected = nil
		if hangs {
			c.awaits(elected)
		}
	}
	c.mu.Unlock()
	if !lost {
		return
	}
	if !hangs {
		elected.Close()
	}
	select {
	case <-c.ctx.Done():
	case <-time.After(electAgainAfter):
		c.electAndPublish()
	}
}

// Lend is part of control.Backend. A companion that lends for the first time is new here: a keeper may have found its editor, or an editor
// a keeper.
func (b backend) Lend(key any, snap *state.Snapshot, front bool) {
	if c := b.c; c.store.Lend(key, snap, front) && c.ctx.Err() == nil {
		go c.electAndPublish() // on a goroutine: the other one waits for the answer
	}
}

// serves says whether an agent finds this companion by its files. The caller holds c.mu.
func (c *Companion) serves(a agent.Agent) bool {
	return c.shares.Mode(a.Name) != settings.ShareLeave && (c.elected == nil || !a.Sole)
}

// rivalTrouble says that another program's companion keeps an agent from connecting to either; nil when none does.
func (c *Companion) rivalTrouble() *control.Trouble {
	for _, a := range agent.All() {
		c.mu.Lock()
		silent := a.Locks == nil || a.With != "" || !a.Sole || c.places[a.Name] == nil || !c.serves(a)
		c.mu.Unlock()
		if silent {
			continue
		}
		if name := a.Rival(c.work.Overlaps); name != "" {
			return &control.Trouble{
				ID:   rivalTroubleID,
				What: a.Label + " connects to no editor here by itself: " + name + " serves it as well",
				Why:  "where two companions serve its folder, it takes neither; a port in its environment decides",
				Do:   "pollux share " + a.Name + " leave leaves it to the other; or end the other, or choose by /ide in " + a.Label,
			}
		}
	}
	return nil
}

// rivalTroubleID is the ID of rivalTrouble.
const rivalTroubleID = "rival"
