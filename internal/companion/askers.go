package companion

import (
	"slices"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/guard"
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
			go c.tellShares() // on a goroutine: the agent waits for its answer
		}, c.o.Log)
		switch {
		case err != nil:
			c.o.Log.Info("an agent is not answered", "agent", a.Name, "err", err)
		case s != nil:
			c.askers[a.Name] = s
		}
	}
}

// Joined is part of control.Backend.
func (b backend) Joined(p proc.Info) {
	c := b.c
	c.tasks.Go(func() {
		c.tellShares()
		if proc.Wait(c.ctx, p) == nil {
			if channel := c.channel.Load(); channel != nil {
				channel.Left(p)
			}
			c.tellShares()
		}
	})
}

// everybody is everySession with the agents that ask by pollux mcp and have no session of their own. What those are is not known, so that
// their Agent is "".
func (c *Companion) everybody() []mcp.SessionInfo {
	all := c.everySession()
	channel := c.channel.Load()
	if channel == nil {
		return all
	}
	for _, a := range channel.Askers() {
		behind := guard.Behind(a.PID)
		if len(behind) == 0 {
			continue
		}
		p := behind[len(behind)-1]
		if !slices.ContainsFunc(all, func(s mcp.SessionInfo) bool { return s.PID == p.PID }) {
			all = append(all, mcp.SessionInfo{ID: -p.PID, Label: a.Name + " by pollux mcp", Version: a.Version, PID: p.PID, Process: p.Name})
		}
	}
	return all
}

// listed is a session as views and pollux status have it.
func (c *Companion) listed(s mcp.SessionInfo) control.Session {
	return control.Session{ID: s.ID, Label: s.Label, Agent: s.Agent, Since: s.Since, Version: s.Version, Process: s.Process, PID: s.PID, Folder: c.folderOf(s), Told: c.toldTo(s.Agent)}
}

// folderOf returns the one of several folders of the workspace that a session belongs to: where its agent says, otherwise where its
// process works. It returns "" when neither is in one. What an agent says is foreign: nothing outside the workspace is looked at for it.
func (c *Companion) folderOf(s mcp.SessionInfo) string {
	if len(c.work.Roots()) < 2 {
		return ""
	}
	if s.Folder != "" && c.work.Holds(s.Folder) {
		if root := c.work.RootOf(s.Folder); root != "" {
			return root
		}
	}
	for _, pid := range []int{s.Says, s.PID} {
		if dir, err := proc.Dir(pid); err == nil {
			if root := c.work.RootOf(dir); root != "" {
				return root
			}
		}
	}
	return ""
}

// Sessions lists everybody who asks or is told, for a view; also the sessions that a keeper holds.
func (c *Companion) Sessions() (list []control.Session) {
	for _, s := range c.everybody() {
		list = append(list, c.listed(s))
	}
	for _, s := range c.keptSessions() {
		s.Told = c.toldTo(s.Agent)
		list = append(list, s)
	}
	return list
}

// everySession lists the sessions of agents, with the processes that have asked; their numbers are negative.
func (c *Companion) everySession() []mcp.SessionInfo {
	all := c.agents.Sessions()
	c.mu.Lock()
	none := len(c.askers) == 0
	c.mu.Unlock()
	if none { // as nearly always
		return all
	}
	for _, a := range agent.All() {
		c.mu.Lock()
		s := c.askers[a.Name]
		c.mu.Unlock()
		if s == nil {
			continue
		}
		for _, p := range s.Asked() {
			all = append(all, mcp.SessionInfo{ID: -p.PID, Label: a.Label, Agent: a.Name, PID: p.PID, Process: p.Name, Folder: s.Folder(p)})
		}
	}
	return all
}
