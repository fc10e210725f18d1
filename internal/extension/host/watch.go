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
)

const (
	// watchQuiet is how long there must be no further change before the disk is looked at, and watchLatest
	// how long that may be put off.
	watchQuiet  = 100 * time.Millisecond
	watchLatest = time.Second
	// watchPoll is how often files are compared, for what the system does not tell.
	watchPoll = 2 * time.Second
)

// watch looks at the disk again whenever something changed there, until ctx ends. The system's events make
// that quick; a comparison of times and sizes now and then makes it sure.
func (h *host) watch(ctx context.Context) {
	w := newWatcher(h.o.Log)
	defer w.close()
	paths := h.look(w, nil) // what has changed meanwhile
	poll := time.NewTicker(watchPoll)
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
	}
}

// look looks at the disk, and returns the paths that are followed from now on. A mistake of pollux's in it leaves things as
// they are until the next change.
func (h *host) look(w *watcher, paths []string) (followed []string) {
	followed, w.seen = paths, "?" // which is never so: the next comparison looks again
	h.survive("looking at the extensions", func() { followed = h.lookNow(w) })
	return followed
}

func (h *host) lookNow(w *watcher) []string {
	// They are followed before they are read: what changes in between is seen by the next look.
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

// handshakeWait is how long a client may take to list the tools before the watching begins without that.
const handshakeWait = 2 * time.Second

// settled waits until the client has listed the tools; false when ctx has ended.
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

// watcher is for watch's goroutine alone. It owns one, which takes the library's errors, and ends with close.
type watcher struct {
	fs       *fsnotify.Watcher // nil where the system reports nothing
	events   <-chan fsnotify.Event
	drained  sync.WaitGroup
	followed []string
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
	// The library waits for somebody to take an error with the lock held that follow needs.
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

// follow has the system report changes of the paths, or of the folders that they are in.
func (w *watcher) follow(paths []string) {
	w.seen = fingerprint(paths)
	if w.fs == nil {
		return
	}
	var dirs []string
	for _, p := range paths {
		dir := p
		if info, err := os.Stat(p); err != nil || !info.IsDir() {
			dir = filepath.Dir(p)
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
		_ = w.fs.Add(dir) // the comparison stands in where that fails
	}
	w.followed = dirs
}

// concerns says whether an event is about one of the paths or something right in it.
func (w *watcher) concerns(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return name == p || filepath.Dir(name) == p })
}

// quiet waits until the events pause; false when ctx has ended.
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

// fingerprint is different when one of the paths has changed.
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
