package companion

import (
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// meet remembers the agent behind a connection, the last process, with its go-betweens.
func (c *Companion) meet(processes ...proc.Info) {
	if len(processes) == 0 { // an earlier life did not learn of any
		return
	}
	c.dropRulesOf(processes) // now: it may propose by a go-between, as pollux mcp
	if len(processes) > 1 && c.isBelow(processes[len(processes)-1]) {
		c.above.add(processes)
		return
	}
	c.met.Add(processes...)
}

// meetCLI is meet for an agent that has a session, or is Codex. It brands a CLI that is known by name, so that every companion knows what that
// CLI starts from now on, and no process gets rid of it. Other clients may be editors or terminals, with terminals of the user's, and so may
// what is above this companion or its editor.
func (c *Companion) meetCLI(processes ...proc.Info) {
	c.meet(processes...)
	if len(processes) == 0 {
		return
	}
	cli := processes[len(processes)-1]
	c.meetKin(cli)
	if last := c.plain.Load(); last != nil && *last == cli || proc.Branded(cli.PID) || !proc.Same(cli.PID, cli.Start) {
		return // a CLI may have thousands of sessions
	}
	if guard.IsCLI(cli.PID) && !c.isBelow(cli) {
		proc.Brand(cli)
		return
	}
	c.plain.Store(&cli)
}

// meetKin meets and brands what else runs a CLI's program: the model's shell may be its daemon's, which asks nothing itself, as Codex's. It
// looks at every process, so it does that once in kinEvery.
func (c *Companion) meetKin(cli proc.Info) {
	now := time.Now().UnixNano()
	last := c.kinAt.Load()
	if now-last < int64(kinEvery) || !c.kinAt.CompareAndSwap(last, now) {
		return
	}
	for _, pid := range guard.Kin(cli.PID) {
		if p, ok := proc.Lookup(pid); ok && !proc.Branded(pid) && !c.isBelow(p) {
			c.meet(p)
			proc.Brand(p)
		}
	}
}

// kinEvery is how often all processes are looked at for a CLI's kin.
const kinEvery = 500 * time.Millisecond

// meetAgain meets the living agents of a companion whose sessions do not come back.
func (c *Companion) meetAgain(old *discovery.Record) {
	c.met.Add(old.Met...)
	for _, agent := range old.Sessions {
		if slices.ContainsFunc(agent, func(p proc.Info) bool { return proc.Same(p.PID, p.Start) }) {
			c.meet(agent...)
		}
	}
}

// isBelow says whether a process has started this companion or its editor, directly or not.
func (c *Companion) isBelow(p proc.Info) bool {
	return slices.ContainsFunc(c.selves(), func(pid int) bool { return guard.Descends(pid, []proc.Info{p}) })
}

// maxAbove bounds an above.
const maxAbove = 64

// An above has agents above this companion that stand behind go-betweens, each as long as its first go-between lives. Such an agent may be
// the program that takes in the children of ended processes, the user's own session. The zero value is ready; its methods may be called
// from any goroutine.
type above struct {
	mu   sync.Mutex // guards the below
	all  [][]proc.Info
	full bool
}

func (a *above) add(processes []proc.Info) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.prune()
	switch {
	case slices.ContainsFunc(a.all, func(old []proc.Info) bool { return old[0].PID == processes[0].PID }):
	case len(a.all) >= maxAbove:
		a.full = true
	default:
		a.all = append(a.all, slices.Clone(processes))
	}
}

// living returns the agents with their go-betweens. With full, there were more.
func (a *above) living() (agents []proc.Info, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.prune()
	return slices.Concat(a.all...), a.full
}

// prune forgets agents whose go-between has ended. The caller holds mu.
func (a *above) prune() {
	a.all = slices.DeleteFunc(a.all, func(processes []proc.Info) bool { return !proc.Same(processes[0].PID, processes[0].Start) })
}
