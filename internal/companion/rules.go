package companion

import (
	"context"
	"slices"
	"sync"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// followRules makes the context anew when a file changes that keeps others from agents: an ignore file, or an agent's own settings (SPEC C-8).
// An agent that asks is answered by what they say at that moment; this is for the agents that are told. So it watches only while one is connected.
func (c *Companion) followRules() {
	var mu sync.Mutex // guards open and lent
	var open, lent []string
	set := func(list *[]string, paths []string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(*list, paths) {
			*list = paths
			c.lookAtRules()
		}
	}
	cancels := []func(){
		c.store.FollowOpen(func(paths []string) { set(&open, paths) }),
		c.store.Subscribe(func(snap *state.Snapshot) {
			var paths []string
			if snap.Lent != nil {
				for _, f := range snap.Lent.Files {
					paths = append(paths, f.Path)
				}
			}
			set(&lent, paths)
		}),
	}
	c.onStop("rules", func(context.Context) error {
		for _, cancel := range cancels {
			cancel()
		}
		return nil
	})
	c.follow(follow{
		wake: c.wakeRules,
		want: func() (files, comes []string) {
			if len(c.agents.Sessions()) == 0 {
				return nil, nil
			}
			mu.Lock()
			all := slices.Concat(open, lent)
			mu.Unlock()
			return c.work.RuleFiles(all)
		},
		changed: c.rulesChanged,
		began:   func([]string) { c.store.Touch() },
	})
}

// rulesChanged is the watcher's callback. Where a folder comes up, there is more to watch.
func (c *Companion) rulesChanged(change workspace.Change) {
	if len(change.Files) > 0 {
		c.store.Touch()
	}
	c.lookAtRules()
}

// lookAtRules finds out soon which files are to be watched for followRules.
func (c *Companion) lookAtRules() { poke(c.wakeRules) }
