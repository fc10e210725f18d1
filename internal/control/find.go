package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

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
		persons = slices.DeleteFunc(Persons(ctx, clients, nil), func(c *Client) bool { return c.Status.depth(folder) == 0 })
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
		return nil, fmt.Errorf("%w (%q) but process %s, started from an agent's own shell; end that, and start one in a terminal of yours: pollux serve",
			ErrNone, folder, numbers(serving))
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

// numbers lists the companions' processes.
func numbers(clients []*Client) string {
	list := make([]string, len(clients))
	for i, c := range clients {
		list[i] = strconv.Itoa(c.Status.PID)
	}
	return strings.Join(list, ", ")
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

// Persons leaves out companions that an agent started: those with its marks, those below one of known, and, if several remain, those
// below an agent of any of them. Two that call each other an agent's are both left out, since one of them lies.
func Persons(ctx context.Context, clients []*Client, known []proc.Info) []*Client {
	clients = slices.DeleteFunc(slices.Clone(clients), func(c *Client) bool { return c.FromAgent(known) })
	if len(clients) < 2 {
		return clients
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	said := make([][]proc.Info, len(clients))
	var wait sync.WaitGroup
	for i, c := range clients {
		wait.Go(func() {
			if agents, err := c.agents(ctx); err == nil && !guard.Same(agents.Processes) { // pollux conform may be above the companion that it tries
				said[i] = agents.Processes
			}
		})
	}
	wait.Wait()
	var apart, below []*Client
	for i, c := range clients {
		if c.FromAgent(said[i]) { // what it says of others does not count: it could accuse them
			below = append(below, c)
			continue
		}
		apart = append(apart, c)
		known = append(slices.Clip(known), said[i]...)
	}
	if len(apart) == 0 {
		return below // this whole terminal runs below one
	}
	return slices.DeleteFunc(apart, func(c *Client) bool { return c.FromAgent(known) })
}

// FromAgent says whether the process that listens at the socket has an agent's mark, or runs below one of agents. That process may be any
// program. One that has made the socket, passed it on and ended hides who listens, and counts as an agent's; so does one that keeps its
// environment, where a mark may be, from its own user. pollux never does that.
func (c *Client) FromAgent(agents []proc.Info) bool {
	if c.ended {
		return true
	}
	switch guard.Look(c.server.PID, agents) {
	case guard.Marked, guard.Below:
		return true
	case guard.Unseen:
		_, told := proc.Lookup(os.Getpid())
		return told && c.server.PID != 0
	}
	return proc.Hides(c.server.PID) || !proc.Same(c.server.PID, c.server.Start)
}
