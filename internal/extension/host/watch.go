package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pollux-companion/pollux/internal/paths"
)

const (
	// watchQuiet is how long events must pause before the disk is read, watchLatest the longest delay by that.
	watchQuiet  = 100 * time.Millisecond
	watchLatest = time.Second
	// watchPoll is how often files are compared where the system may not report a change, watchSure how often where it does.
	watchPoll = 2 * time.Second
	watchSure = 30 * time.Second
)

// watch reads the disk again after each change, until ctx ends. The system's events make that fast. Comparing times
// and sizes from time to time makes it reliable.
func (h *host) watch(ctx context.Context) {
	w := newWatcher(h.o.Log)
	defer w.close()
	paths := h.look(w, nil) // for changes since the start
	poll := time.NewTicker(w.every())
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.events:
			if !ok {
				w.events = nil
				continue
			}
			if !w.concerns(e.Name, paths) || !w.quiet(ctx) {
				continue
			}
		case <-poll.C:
			if fingerprint(paths) == w.seen {
				continue
			}
		}
		paths = h.look(w, paths)
		poll.Reset(w.every())
	}
}

// look reads the disk and returns the paths to follow from now on. If pollux panics, the old paths stay until the
// next change.
func (h *host) look(w *watcher, paths []string) (followed []string) {
	followed, w.seen = paths, "?" // never equal: the next comparison looks again
	h.survive("looking at the extensions", func() { followed = h.lookNow(w) })
	return followed
}

func (h *host) lookNow(w *watcher) []string {
	// Follow before reading, so that the next look sees a change in between.
	followed := h.o.Watch(h.o.Dispatcher.Set())
	for range 3 {
		w.follow(followed)
		h.refresh()
		next := h.o.Watch(h.o.Dispatcher.Set())
		if slices.Equal(next, followed) {
			return followed
		}
		followed = next
	}
	w.follow(followed)
	w.seen = "?" // they keep changing
	return followed
}

// handshakeWait is how long watching waits for the client's first list.
const handshakeWait = 2 * time.Second

// settled waits until the client has listed the tools, at most handshakeWait; false if ctx has ended.
func (h *host) settled(ctx context.Context) bool {
	late := time.NewTimer(handshakeWait)
	defer late.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for h.lists.Load() == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-late.C:
			return true
		case <-tick.C:
		}
	}
	return true
}

// watcher belongs to the goroutine of watch. It owns one goroutine, which drains the library's errors and ends with
// close.
type watcher struct {
	fs       *fsnotify.Watcher // nil if the system reports no changes
	events   <-chan fsnotify.Event
	drained  sync.WaitGroup
	followed []string
	sure     bool // the system reports changes of all that is followed
	seen     string
}

func newWatcher(log *slog.Logger) *watcher {
	w := &watcher{}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("the system reports no changes; they are noticed later", "err", err)
		return w
	}
	w.fs, w.events = fs, fs.Events
	// The library delivers errors while holding a lock that follow needs, so somebody must always receive them.
	w.drained.Go(func() {
		for err := range fs.Errors {
			log.Debug("watching the extensions", "err", err)
		}
	})
	return w
}

func (w *watcher) close() {
	if w.fs != nil {
		w.fs.Close()
	}
	w.drained.Wait()
}

// follow makes the system report changes of the paths, or of their folders.
func (w *watcher) follow(paths []string) {
	w.seen = fingerprint(paths)
	if w.fs == nil {
		return
	}
	var dirs []string
	w.sure = true
	for _, p := range paths {
		dir := p
		info, err := os.Lstat(p)
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			w.sure = false // nothing reports what is behind a link
			info, err = os.Stat(p)
		}
		for err != nil || !info.IsDir() { // the nearest folder that is there
			dir = filepath.Dir(dir)
			if info, err = os.Stat(dir); dir == filepath.Dir(dir) {
				break
			}
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range w.followed {
		if !slices.Contains(dirs, dir) {
			_ = w.fs.Remove(dir) // it may be gone
		}
	}
	for _, dir := range dirs {
		if w.fs.Add(dir) != nil { // the comparison notices changes
			w.sure = false
		}
	}
	w.followed = dirs
}

// every is how often files are compared. A comparison wakes an idle machine.
func (w *watcher) every() time.Duration {
	if w.sure && w.seen != "?" {
		return watchSure
	}
	return watchPoll
}

// concerns says whether an event is about one of the paths, a direct child of one, a folder above one, or a folder that is followed for
// one: it may have gone.
func (w *watcher) concerns(name string, all []string) bool {
	return slices.Contains(w.followed, name) || slices.ContainsFunc(all, func(p string) bool {
		return filepath.Dir(name) == p || paths.Within(name, p)
	})
}

// quiet waits until the events pause; false if ctx has ended.
func (w *watcher) quiet(ctx context.Context) bool {
	latest := time.NewTimer(watchLatest)
	defer latest.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-latest.C:
			return true
		case <-time.After(watchQuiet):
			return true
		case _, ok := <-w.events:
			if !ok {
				w.events = nil
			}
		}
	}
}

// fingerprint changes when one of the paths has changed.
func fingerprint(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			b.WriteString("-\n")
			continue
		}
		fmt.Fprintf(&b, "%d %d %v\n", info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return b.String()
}
