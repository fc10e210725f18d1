package relay

import (
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/client"
)

// Ways returns the ways to the companions that an agent with lock files would join in w, in its order. choose replays the agent's
// choice; home is the folder of its files. Unlike the agent, the relay passes over companions that have gone.
func Ways(choose func(lockfile.World) *lockfile.Choice, home string, w *client.World) func() []client.Way {
	w = client.Complete(w)
	return func() (ways []client.Way) {
		for _, c := range choose(lockfile.World{Home: home, Dir: w.Dir, Getenv: w.Getenv, Alive: w.Alive}).Candidates {
			if c.Lock != nil && c.Lock.Stdio == nil && c.Fits && !c.Dead {
				ways = append(ways, client.Way{Host: "127.0.0.1", Port: c.Lock.Port, Token: c.Lock.Token, From: c.Name})
			}
		}
		return ways
	}
}
