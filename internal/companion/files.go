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

// A follow is a watch on files until Stop.
type follow struct {
	wake    <-chan struct{}
	want    func() (files, comes []string) // what to watch from now on; asked after each wake-up
	changed func(workspace.Change)
	// began is called when the watch has changed, with the files that are new in it: they may have changed before.
	began func(fresh []string)
}

// follow keeps f up to date on a goroutine of its own. The watcher is made when there is something to watch.
func (c *Companion) follow(f follow) {
	c.tasks.Go(func() {
		var watcher *workspace.Watcher
		defer func() {
			if watcher != nil {
				watcher.Close()
			}
		}()
		var files, comes []string
		for c.await(f.wake, watchAfter) {
			nowFiles, nowComes := f.want()
			if slices.Equal(nowFiles, files) && slices.Equal(nowComes, comes) {
				continue
			}
			if watcher == nil {
				watcher = c.work.Watch(f.changed, c.o.Log)
			}
			watcher.Set(nowFiles, nowComes)
			f.began(slices.DeleteFunc(slices.Clone(nowFiles), func(path string) bool { return slices.Contains(files, path) }))
			files, comes = nowFiles, nowComes
		}
	})
}

// poke wakes whoever waits; one wake-up that waits is enough.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// followFiles has the registry read the files of open proposals when they change,
// until Stop (SPEC F-13).
func (c *Companion) followFiles() {
	wake := make(chan struct{}, 1)
	unwatch := c.reg.Watch(func(e review.Event) {
		if e.Kind == review.Opened || e.Kind == review.Decided {
			poke(wake)
		}
	})
	c.onStop("files", func(context.Context) error { unwatch(); return nil })
	look := func(paths []string) {
		for _, path := range paths {
			c.reg.Look(path)
		}
	}
	c.follow(follow{
		wake:    wake,
		want:    func() (files, comes []string) { return c.pendingPaths(), nil },
		changed: func(change workspace.Change) { look(change.Files) },
		began:   look,
	})
}

// followOpen refreshes the context when an open file disappears, comes back or changes without a word from the
// editor (SPEC C-6). It does so only while an agent is connected. The page has a watcher of its own.
func (c *Companion) followOpen() {
	var mu sync.Mutex
	var open []string
	wake := make(chan struct{}, 1)
	cancels := []func(){
		c.agents.Watch(func() { poke(wake) }),
		c.store.FollowOpen(func(paths []string) {
			mu.Lock()
			open = paths
			mu.Unlock()
			poke(wake)
		}),
	}
	c.onStop("open files", func(context.Context) error {
		for _, cancel := range cancels {
			cancel()
		}
		return nil
	})
	c.follow(follow{
		wake: wake,
		want: func() (files, comes []string) {
			if len(c.agents.Sessions()) == 0 {
				return nil, nil
			}
			mu.Lock()
			defer mu.Unlock()
			return open, nil
		},
		changed: func(workspace.Change) { c.store.Touch() },
		began:   func([]string) { c.store.Touch() },
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
