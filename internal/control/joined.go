package control

import (
	"context"
	"slices"
	"sync"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/words"
)

// An Asker is an agent that asks by pollux mcp, as it names itself when it starts that.
type Asker struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// PID is pollux mcp's process.
	PID int `json:"pid"`
}

// maxAskers bounds the askers that are remembered; maxAskerName bounds their names and versions, in bytes.
const (
	maxAskers    = 64
	maxAskerName = 100
)

// Join tells the companion which agent asks by this process, until this process ends.
func (c *Client) Join(ctx context.Context, name, version string) error {
	return c.call(ctx, methodJoin, Asker{Name: name, Version: version}, &empty{})
}

// askers remembers the askers whose processes live. The zero value is ready; its methods may be called from any goroutine.
type askers struct {
	mu   sync.Mutex // guards the below
	all  []Asker
	from []proc.Info
}

// add remembers an asker, or its newer name, and says whether it is a new one.
func (j *askers) add(a Asker, from proc.Info) (fresh bool) {
	a.Name, a.Version, a.PID = words.Printable(words.Clip(a.Name, maxAskerName)), words.Printable(words.Clip(a.Version, maxAskerName)), from.PID
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sweep()
	i := slices.IndexFunc(j.from, func(p proc.Info) bool { return p.PID == from.PID })
	switch {
	case a.Name == "":
	case i >= 0:
		j.all[i] = a
	case len(j.all) < maxAskers:
		j.all, j.from = append(j.all, a), append(j.from, from)
		return true
	}
	return false
}

// Askers lists the agents that ask by pollux mcp, in the order in which they came.
func (s *Server) Askers() []Asker { return s.joined.list() }

// Left forgets an asker whose process has ended, which the system may show for a while.
func (s *Server) Left(p proc.Info) {
	j := &s.joined
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.Index(j.from, p); i >= 0 {
		j.all, j.from = slices.Delete(j.all, i, i+1), slices.Delete(j.from, i, i+1)
	}
}

// list returns the askers in the order in which they came.
func (j *askers) list() []Asker {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sweep()
	return slices.Clone(j.all)
}

// sweep forgets those whose process has ended. The caller holds mu.
func (j *askers) sweep() {
	for i := len(j.all) - 1; i >= 0; i-- {
		if !proc.Same(j.from[i].PID, j.from[i].Start) {
			j.all, j.from = slices.Delete(j.all, i, i+1), slices.Delete(j.from, i, i+1)
		}
	}
}
