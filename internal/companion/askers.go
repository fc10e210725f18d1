package companion

import (
	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
)

// answerAskers answers the agents that ask on a socket of their own (SPEC CX-1), where they have been used. When another companion
// answers one already, answerAskers tries again with the next touch. The caller holds c.mu.
func (c *Companion) answerAskers() {
	for _, a := range agent.All() {
		if a.Answer == nil {
			continue
		}
		if s := c.askers[a.Name]; s != nil || !c.serves(a) {
			if s != nil && !c.serves(a) {
				s.Close()
				delete(c.askers, a.Name)
			}
			continue
		}
		s, err := a.Answer(func() *state.Snapshot { return c.store.Snapshot().For(a.Name) }, func(p proc.Info) {
			c.meetCLI(p)
			c.askShares()
		}, c.o.Log)
		switch {
		case err != nil:
			c.o.Log.Info("an agent is not answered", "agent", a.Name, "err", err)
		case s != nil:
			c.askers[a.Name] = s
		}
	}
}

// everySession lists the sessions of agents, with the processes that have asked; their numbers are negative.
func (c *Companion) everySession() []mcp.SessionInfo {
	all := c.agents.Sessions()
	for _, a := range agent.All() {
		c.mu.Lock()
		s := c.askers[a.Name]
		c.mu.Unlock()
		if s == nil {
			continue
		}
		for _, p := range s.Asked() {
			all = append(all, mcp.SessionInfo{ID: -p.PID, Label: a.Label, Agent: a.Name, PID: p.PID, Process: p.Name})
		}
	}
	return all
}
