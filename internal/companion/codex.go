package companion

import (
	"errors"
	"os"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/codex"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
)

// serveCodex answers Codex where Codex has been used (SPEC CX-1). When another companion answers it already, serveCodex tries again
// with the next touch. The caller holds c.mu.
func (c *Companion) serveCodex() {
	if a, _ := agent.Find(codex.Name); !c.serves(a) {
		if c.codex != nil {
			c.codex.Close()
			c.codex = nil
		}
		return
	}
	home, err := os.UserHomeDir()
	if c.codex != nil || err != nil || !codex.Used(os.Getenv, home) {
		return
	}
	s, err := codex.Serve(os.TempDir(), func() *state.Snapshot { return c.store.Snapshot().For(codex.Name) }, func(p proc.Info) {
		c.meet(p)
		c.askShares()
	}, c.o.Log)
	switch {
	case errors.Is(err, codex.ErrTaken): // Codex hears from the other companion
	case err != nil:
		c.o.Log.Info("codex is not answered", "err", err)
	default:
		c.codex = s
	}
}

// everySession lists the sessions of agents, with the Codexes that have asked; their numbers are negative.
func (c *Companion) everySession() []mcp.SessionInfo {
	all := c.agents.Sessions()
	for _, p := range c.codexes() {
		all = append(all, mcp.SessionInfo{ID: -p.PID, Label: codex.Label, Agent: codex.Name, PID: p.PID, Process: p.Name})
	}
	return all
}

// codexes are the living processes of Codexes that have asked.
func (c *Companion) codexes() []proc.Info {
	c.mu.Lock()
	s := c.codex
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Asked()
}
