package companion

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// watchAfter is how long a proposal must be open before its file is watched. A diff
// that a rule decides at once then costs no watch.
const watchAfter = 100 * time.Millisecond

// followFiles has the registry read the files of open proposals when they change,
// until Stop (SPEC F-13). The watcher is made with the first proposal.
func (c *Companion) followFiles() {
	wake := make(chan struct{}, 1)
	unwatch := c.reg.Watch(func(e review.Event) {
		if e.Kind == review.Opened || e.Kind == review.Decided {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	c.onStop("files", func(context.Context) error { unwatch(); return nil })
	c.tasks.Go(func() {
		var watcher *workspace.Watcher
		defer func() {
			if watcher != nil {
				watcher.Close()
			}
		}()
		var watched []string
		for c.await(wake, watchAfter) {
			paths := c.pendingPaths()
			if slices.Equal(paths, watched) {
				continue
			}
			if watcher == nil {
				watcher = c.work.Watch(c.filesChanged, c.o.Log)
			}
			watcher.Set(paths, nil)
			for _, path := range paths { // a file may have changed before the watch began
				if !slices.Contains(watched, path) {
					c.reg.Look(path)
				}
			}
			watched = paths
		}
	})
}

// followOpen refreshes the context when an open file disappears, comes back or changes without a word from the
// editor (SPEC C-6). It does so only while an agent is connected. The page has a watcher of its own.
func (c *Companion) followOpen() {
	var mu sync.Mutex
	var open []string
	wake := make(chan struct{}, 1)
	poke := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	cancels := []func(){
		c.agents.Watch(poke),
		c.store.FollowOpen(func(paths []string) {
			mu.Lock()
			open = paths
			mu.Unlock()
			poke()
		}),
	}
	c.onStop("open files", func(context.Context) error {
		for _, cancel := range cancels {
			cancel()
		}
		return nil
	})
	c.tasks.Go(func() {
		var watcher *workspace.Watcher
		defer func() {
			if watcher != nil {
				watcher.Close()
			}
		}()
		var watched []string
		for c.await(wake, watchAfter) {
			var want []string
			if len(c.agents.Sessions()) > 0 {
				mu.Lock()
				want = open
				mu.Unlock()
			}
			if slices.Equal(want, watched) {
				continue
			}
			if watcher == nil {
				watcher = c.work.Watch(func(workspace.Change) { c.store.Touch() }, c.o.Log)
			}
			watcher.Set(want, nil)
			c.store.Touch() // a file may have changed before the watch began
			watched = want
		}
	})
}

// await waits for a wake-up and then for a while; false when the companion stops.
func (c *Companion) await(wake <-chan struct{}, after time.Duration) bool {
	select {
	case <-c.ctx.Done():
		return false
	case <-wake:
	}
	select {
	case <-c.ctx.Done():
		return false
	case <-time.After(after):
		return true
	}
}

// filesChanged is the watcher's callback.
func (c *Companion) filesChanged(change workspace.Change) {
	for _, path := range change.Files {
		c.reg.Look(path)
	}
}

// pendingPaths returns the files of the open proposals, in order, each once.
func (c *Companion) pendingPaths() []string {
	var paths []string
	for _, d := range c.reg.Pending() {
		if p := d.Proposal(); !p.Apart {
			paths = append(paths, p.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
