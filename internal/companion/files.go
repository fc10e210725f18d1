package companion

import (
	"context"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// watchAfter is how long a proposal must be open before its file is watched:
// those that are decided at once, by a rule, cost nothing.
const watchAfter = 100 * time.Millisecond

// followFiles has the registry look at the files of open proposals when they
// change, until Stop (SPEC F-13). The watcher is made with the first proposal.
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
			for _, path := range paths { // what has happened before it was watched
				if !slices.Contains(watched, path) {
					c.reg.Look(path)
				}
			}
			watched = paths
		}
	})
}

// await waits for a word and a while after it; false when the companion stops.
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

// filesChanged is what the watcher calls.
func (c *Companion) filesChanged(change workspace.Change) {
	for _, path := range change.Files {
		c.reg.Look(path)
	}
}

// pendingPaths are the files of the open proposals, in order, each once.
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
