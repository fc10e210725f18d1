package workspace

import (
	"cmp"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// Bounds and times of a Watcher.
const (
	settle    = 50 * time.Millisecond  // quiet before a batch is told
	settleMax = 200 * time.Millisecond // the longest that a batch waits for quiet
	pollEvery = 2 * time.Second        // for folders beyond maxWatches, or that cannot be watched
)

// maxWatches is how many folders are watched; further folders are polled. Kqueue keeps a descriptor open for every file of a
// watched folder, Windows takes a handle and a buffer for each folder, and inotify allows some thousands for all programs of a user.
var maxWatches = cmp.Or(map[string]int{"darwin": 64, "windows": 256}[runtime.GOOS], 1024)

// A Change is a batch of what may have changed on disk.
type Change struct {
	// Dirs are folders whose entries came or went, Files watched files that
	// were written, replaced, removed or came back; absolute, as given to Watch.
	Dirs, Files []string
}

// A Watcher reports changes of files and folders. It watches folders, and so notices a
// file that is replaced by renaming another over it, as careful programs do. What the
// system cannot watch, it polls every two seconds. It owns two goroutines, one of which
// calls the callback; Close ends both.
type Watcher struct {
	changed   func(Change)
	log       *slog.Logger
	notify    *fsnotify.Watcher // nil when the system has none: everything is polled
	pollEvery time.Duration
	wake      chan struct{}
	done      chan struct{}
	ended     chan struct{}

	mu     sync.Mutex // guards what follows
	files  map[string]stamp
	dirs   map[string]bool
	watch  map[string]bool  // folders that notify watches
	polled map[string]stamp // folders that notify could not watch
}

// A stamp tells whether a file has changed; the zero value stands for no file.
type stamp struct {
	modified int64 // Unix nanoseconds
	size     int64
	mode     os.FileMode
}

func stampOf(path string) stamp {
	fi, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{fi.ModTime().UnixNano(), fi.Size(), fi.Mode()}
}

// Watch returns a Watcher that watches nothing yet. It calls changed from its goroutine;
// changed must not block for long. log may be nil.
func (w *Workspace) Watch(changed func(Change), log *slog.Logger) *Watcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	n, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("files are polled: the system does not watch them", "err", err)
		n = nil
	}
	return w.startWatcher(changed, log, n, pollEvery)
}

func (w *Workspace) startWatcher(changed func(Change), log *slog.Logger, n *fsnotify.Watcher, poll time.Duration) *Watcher {
	t := &Watcher{
		log: log, notify: n, pollEvery: poll,
		wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
		files: map[string]stamp{}, dirs: map[string]bool{}, watch: map[string]bool{}, polled: map[string]stamp{},
	}
	t.changed = func(c Change) {
		w.index.touch(len(c.Dirs) > 0)
		changed(c)
	}
	go t.run()
	return t
}

// Close ends the watcher. After it returns, the callback is not called again. It must
// not be called from the callback.
func (t *Watcher) Close() {
	t.mu.Lock()
	select {
	case <-t.done:
	default:
		close(t.done)
		if t.notify != nil {
			t.notify.Close()
		}
	}
	t.mu.Unlock()
	<-t.ended
}

// Set replaces what is watched: files (open documents) and folders (expanded in a tree),
// absolute. Paths that were watched before stay watched without a gap.
func (t *Watcher) Set(files, dirs []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.files
	t.files = make(map[string]stamp, len(files))
	need := map[string]bool{}
	for _, f := range files {
		if s, ok := old[f]; ok {
			t.files[f] = s
		} else {
			t.files[f] = stampOf(f)
		}
		need[filepath.Dir(f)] = true
		// Watch the target's folder as well: that is where a symlink's target is replaced.
		if real, err := filepath.EvalSymlinks(f); err == nil {
			need[filepath.Dir(real)] = true
		}
	}
	t.dirs = map[string]bool{}
	for _, d := range dirs {
		t.dirs[d], need[d] = true, true
	}
	for d := range t.watch {
		if !need[d] {
			_ = t.notify.Remove(d) // an error means that it is gone already
			delete(t.watch, d)
		}
	}
	maps.DeleteFunc(t.polled, func(d string, _ stamp) bool { return !need[d] })
	for d := range need {
		if !t.watch[d] && !t.add(d) {
			if _, ok := t.polled[d]; !ok {
				t.polled[d] = stampOf(d)
			}
		}
	}
	select {
	case t.wake <- struct{}{}: // the poll timer may be needed now
	default:
	}
}

// add watches a folder, if the system and the bound allow it. The caller holds t.mu.
func (t *Watcher) add(dir string) bool {
	if t.notify == nil || len(t.watch) >= maxWatches {
		return false
	}
	if err := t.notify.Add(dir); err != nil {
		t.log.Debug("a folder is polled", "err", err)
		return false
	}
	t.watch[dir] = true
	delete(t.polled, dir)
	return true
}

// run gathers events until they pause, then reports them.
func (t *Watcher) run() {
	defer close(t.ended)
	var (
		events chan fsnotify.Event
		errs   chan error
		dirs   = map[string]bool{} // of the batch
		quiet  <-chan time.Time
		since  time.Time // of the batch's first event
		poll   <-chan time.Time
	)
	if t.notify != nil {
		events, errs = t.notify.Events, make(chan error, 1)
		var passing sync.WaitGroup
		passing.Go(func() { pass(t.notify.Errors, errs) })
		defer passing.Wait()
	}
	for {
		select {
		case <-t.done:
			return
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if !t.note(e, dirs) {
				continue
			}
			if quiet == nil {
				since = time.Now()
			}
			quiet = time.After(max(0, min(settle, settleMax-time.Since(since))))
		case err := <-errs:
			t.log.Debug("watching files", "err", err)
			for d := range t.look(true) { // events were lost, so everything may have changed
				dirs[d] = true
			}
			quiet = time.After(settle)
			since = time.Now()
		case <-quiet:
			quiet = nil
			t.tell(dirs)
			dirs = map[string]bool{}
		case <-poll:
			poll = t.nextPoll()
			t.tell(t.look(false))
		case <-t.wake:
			poll = t.nextPoll()
		}
	}
}

// pass passes errors on until they end; while nobody takes one, it stands for all that follow. The library holds a lock
// while somebody takes its error. note and Set need that lock, so the library must not wait for them.
func pass(from <-chan error, to chan<- error) {
	for err := range from {
		select {
		case to <- err:
		default:
		}
	}
}

// note adds an event to the batch, and reports whether it matters: an entry of a watched
// folder came or went, or a watched file may have changed.
func (t *Watcher) note(e fsnotify.Event, dirs map[string]bool) bool {
	if safefile.IsTemp(filepath.Base(e.Name)) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		if t.watch[e.Name] { // the watched folder itself has changed, and may come back
			_ = t.notify.Remove(e.Name)
			delete(t.watch, e.Name)
			t.polled[e.Name] = stamp{}
			select {
			case t.wake <- struct{}{}:
			default:
			}
		}
	}
	dir := filepath.Dir(e.Name)
	if e.Op&(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) != 0 && t.dirs[dir] {
		dirs[dir] = true
	}
	return e.Op != fsnotify.Chmod || len(t.files) > 0
}

// look finds the polled folders that have changed, and tries to watch them again. With
// lost set, it returns all watched folders too.
func (t *Watcher) look(lost bool) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	dirs := map[string]bool{}
	for d, was := range t.polled {
		now := stampOf(d)
		t.polled[d] = now
		if now != was && t.dirs[d] {
			dirs[d] = true
		}
		if now != (stamp{}) {
			t.add(d)
		}
	}
	if lost {
		maps.Copy(dirs, t.dirs)
	}
	return dirs
}

// nextPoll returns the poll timer's channel; nil when nothing needs polling.
func (t *Watcher) nextPoll() <-chan time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.polled) == 0 {
		return nil
	}
	return time.After(t.pollEvery)
}

// tell reports the folders, and the watched files whose stamp has changed.
func (t *Watcher) tell(dirs map[string]bool) {
	c := Change{Dirs: slices.Sorted(maps.Keys(dirs))}
	t.mu.Lock()
	for f, was := range t.files {
		if now := stampOf(f); now != was {
			t.files[f] = now
			c.Files = append(c.Files, f)
		}
	}
	t.mu.Unlock()
	if len(c.Dirs)+len(c.Files) > 0 {
		slices.Sort(c.Files)
		t.changed(c)
	}
}
