package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
)

// ErrNone: no companion serves the folder. The error's text lists the ones that run.
var ErrNone = errors.New("no companion serves this folder")

// Find connects to the companion that serves folder (absolute and canonical): the one with the nearest root, and among
// equals the newest (SPEC §11.6). A companion that an agent started is found by that agent alone (SPEC §11.1).
func Find(ctx context.Context, dirs []string, folder string) (*Client, error) {
	clients, silent := ListAll(ctx, dirs)
	var serving []*Client
	for _, c := range clients {
		if c.Status.depth(folder) > 0 {
			serving = append(serving, c)
		}
	}
	persons := serving
	if !inAgent() {
		persons = ofPersons(ctx, serving)
	}
	best := nearest(persons, folder)
	for _, c := range clients {
		if c != best {
			c.Close()
		}
	}
	switch {
	case best != nil:
		return best, nil
	case len(serving) > 0:
		return nil, fmt.Errorf("%w (%q) but process %d, which was started from an agent's own shell; start one in a terminal of yours: pollux serve",
			ErrNone, folder, serving[0].Status.PID)
	case len(silent) > 0:
		return nil, SilentError(silent)
	}
	var others strings.Builder
	for _, c := range clients {
		fmt.Fprintf(&others, "\n  process %d serves %s", c.Status.PID, quoted(c.Status.Roots))
	}
	if others.Len() > 0 {
		return nil, fmt.Errorf("%w (%q); go to a folder that is served, or run: pollux serve%s", ErrNone, folder, others.String())
	}
	return nil, fmt.Errorf("%w (%q), and none runs; start one with: pollux serve", ErrNone, folder)
}

// depth returns the length of the nearest root that holds folder, 0 when none does.
func (s *Status) depth(folder string) (n int) {
	for _, root := range s.Roots {
		if paths.Within(root, folder) {
			n = max(n, len(root))
		}
	}
	return n
}

// nearest returns the companion with the nearest root: the newest one, and a keeper only when there is no other. nil for none.
func nearest(clients []*Client, folder string) (best *Client) {
	for _, c := range clients {
		n, most := c.Status.depth(folder), 0
		if best != nil {
			most = best.Status.depth(folder)
		}
		if n > most || n == most && best.Status.Keeper && !c.Status.Keeper {
			best = c
		}
	}
	return best
}

// ofPersons leaves out companions that an agent started: those with its marks, and, if others remain, those below it.
func ofPersons(ctx context.Context, clients []*Client) []*Client {
	clients = slices.DeleteFunc(slices.Clone(clients), func(c *Client) bool { return c.FromAgent(nil) })
	if len(clients) < 2 {
		return clients
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var known []proc.Info
	for _, c := range clients {
		if agents, err := c.Agents(ctx); err == nil && !guard.Same(agents.Processes) { // pollux conform may be above the companion that it tries
			known = append(known, agents.Processes...)
		}
	}
	apart := slices.DeleteFunc(slices.Clone(clients), func(c *Client) bool { return c.FromAgent(known) })
	if len(apart) == 0 {
		return clients // this whole terminal runs below one
	}
	return apart
}

// FromAgent says whether the process that listens at the socket has an agent's mark, or runs below one of agents. That process may be any program.
func (c *Client) FromAgent(agents []proc.Info) bool {
	verdict := guard.Look(c.server, agents)
	return verdict == guard.Marked || verdict == guard.Below
}
