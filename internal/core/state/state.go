// Package state holds what the user looks at: roots, trust, files, focus,
// cursor, selection and diagnostics. It tells its subscribers, debounced, when
// that changes. It knows neither editors nor agents.
package state

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/core/notify"
)

// Options configure a Store; the zero value and nil are valid.
type Options struct {
	// Debounce is the quiet time before a change is published (50 ms when
	// 0), MaxDelay the longest that a change waits although others follow
	// (200 ms when 0; SPEC C-2).
	Debounce, MaxDelay time.Duration
	// Keep says whether a path may be named to agents: the file exists, lies in the
	// workspace and is not ignored (SPEC C-6, C-8). Each publication and each Snapshot calls
	// Keep once, and the function that it returns once for each path. Keep may do I/O: the
	// store's lock is never held, and calls may come from several goroutines. nil keeps all.
	Keep func() (keep func(path string) bool)
	// Denied says whether a path that Keep allows must not be named to one of the agents Deniable. It is called as Keep is; nil denies nothing.
	Denied   func() (denied func(agent, path string) bool)
	Deniable []string
	// LentTo are the agents that are told what Lend brings.
	LentTo []string
}

func (o *Options) lentTo() []string {
	if o == nil {
		return nil
	}
	return o.LentTo
}

func (o *Options) debounce() time.Duration {
	if o == nil || o.Debounce == 0 {
		return 50 * time.Millisecond
	}
	return o.Debounce
}

func (o *Options) maxDelay() time.Duration {
	if o == nil || o.MaxDelay == 0 {
		return 200 * time.Millisecond
	}
	return o.MaxDelay
}

func (o *Options) keep() func() func(string) bool {
	if o == nil {
		return nil
	}
	return o.Keep
}

// A Store is one companion's view of what its user looks at: the open files
// of all windows together, and the active file, cursor and selections of the
// window in front. Its methods may be called from any goroutine.
// Recording an event costs the same however many files are open (apart from the
// lists in its own arguments). A publication costs in proportion to the open files.
// Goroutines: one at most, the timer's. The first change arms it. It calls the
// subscribers when the change is due (a later change only moves the due time), and
// ends when nothing is left to publish. Shut stops it.
type Store struct {
	debounce, maxDelay time.Duration
	keep               func() func(string) bool
	denied             func() func(agent, path string) bool
	deniable           []string
	lentTo             []string
	subscribers        notify.List[*Snapshot]
	published          *Snapshot // only the timer's goroutine uses it
	followers          notify.List[[]string]
	paused             atomic.Bool
	pauses             notify.List[bool]
	told               []string // the list that followers were told last; only the timer's goroutine uses it

	mu      sync.Mutex // guards all below
	windows map[string]*window
	front   *window // nil as long as there is no window
	fronts  int     // counts how often a window came to the front
	// focused holds when each open file had its last focus, in Unix milliseconds, no
	// two alike. The active file has the largest time, lastFocus.
	focused   map[string]int64
	lastFocus int64
	active    string // front.active, as of the last call of changed
	roots     []string
	trusted   *bool
	withheld  []string // agents, sorted
	lent      map[any]*Snapshot
	lender    any // whose user was active last; nil for this store's own
	diags     map[string][]Diagnostic
	shared    bool   // diags is part of a snapshot: copy before writing
	files     []File // the snapshot's, shared with the snapshots handed out; nil when out of date

	used          time.Time // when a window last reported something that its user did
	armed         bool      // the timer is set or its goroutine at work
	shut          bool
	timer         *time.Timer // nil before the first change
	first, latest time.Time   // times of the changes that wait to be published; zero when none waits
}

// New returns an empty Store.
func New(o *Options) *Store {
	s := &Store{
		debounce: o.debounce(), maxDelay: o.maxDelay(), keep: o.keep(), lentTo: o.lentTo(),
		lent:      make(map[any]*Snapshot),
		published: &Snapshot{},
		windows:   make(map[string]*window),
		focused:   make(map[string]int64),
	}
	if o != nil {
		s.denied, s.deniable = o.Denied, o.Deniable
	}
	return s
}

// SetRoots replaces the workspace's folders.
func (s *Store) SetRoots(roots []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots = slices.Clone(roots)
	s.changed()
}

// SetTrust records the editor's own workspace trust; nil when the editor has no such notion.
func (s *Store) SetTrust(trusted *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = nil
	if trusted != nil {
		value := *trusted
		s.trusted = &value
	}
	s.changed()
}

// Report takes what a window shows now. The editor's adapter chooses the window's name.
// The first report of a window comes to the front when the window has an active
// document or is the only one.
func (s *Store) Report(name string, r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.window(name)
	looks, lists := w.look(r), w.list(r)
	if looks || r.Front {
		s.used = time.Now()
	}
	comes := false
	if looks || r.Front || s.front == nil {
		comes = s.front != w
		s.fronts++
		s.front, w.fronted = w, s.fronts
	}
	if lists {
		s.files = nil
	}
	returns := s.lender != nil && (looks || r.Front)
	if returns {
		s.lender = nil
	}
	if looks || lists || comes || returns {
		s.changed()
	}
}

// Used returns when the user last looked at something else or moved the cursor, in any window; zero for never.
func (s *Store) Used() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// window finds or makes the window of that name.
func (s *Store) window(name string) *window {
	w, ok := s.windows[name]
	if !ok {
		w = &window{open: make(paths), dirty: make(paths)}
		s.windows[name] = w
	}
	return w
}

// Open records that a window has opened a document, for editors that tell single
// documents. It gives the document no focus; Report does.
func (s *Store) Open(window, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.window(window)
	if _, ok := w.open[path]; ok || path == "" {
		return
	}
	w.open[path] = struct{}{}
	s.files = nil
	s.changed()
}

// Close is the opposite of Open. When a window's active document is closed, nothing
// is active in that window until its next report.
func (s *Store) Close(window, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.windows[window]
	if !ok {
		return
	}
	if _, ok := w.open[path]; !ok {
		return
	}
	delete(w.open, path)
	delete(w.dirty, path)
	if w.active == path {
		w.look(Report{})
	}
	s.files = nil
	s.changed()
}

// Leave forgets a window, and closes the files that only it had open. When it was in
// front, the window that was in front before comes back.
func (s *Store) Leave(window string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.windows[window]
	if !ok {
		return
	}
	delete(s.windows, window)
	if s.front == w {
		s.front = nil
		for _, other := range s.windows {
			if s.front == nil || other.fronted > s.front.fronted {
				s.front = other
			}
		}
	}
	s.files = nil
	s.changed()
}

// Rename moves a document, or every document below a folder, to a new path
// in every window, keeping focus times.
func (s *Store) Rename(from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rename := func(path string) (string, bool) {
		rest, ok := strings.CutPrefix(path, from)
		ok = ok && from != "" && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(from[len(from)-1]))
		return to + rest, ok
	}
	found := false
	for _, w := range s.windows {
		found = w.open.move(rename) || found
		w.dirty.move(rename)
		if path, ok := rename(w.active); ok {
			w.active = path
		}
	}
	focused := make(map[string]int64, len(s.focused))
	for path, at := range s.focused {
		if moved, ok := rename(path); ok {
			path = moved
		}
		focused[path] = max(focused[path], at)
	}
	s.focused = focused
	if path, ok := rename(s.active); ok {
		s.active = path
	}
	diags := make(map[string][]Diagnostic, len(s.diags))
	for path, ds := range s.diags {
		if moved, ok := rename(path); ok {
			path, found = moved, true
		}
		diags[path] = ds
	}
	s.diags, s.shared = diags, false
	if found {
		s.files = nil
		s.changed()
	}
}

// Touch asks for a publication although no report changed: a file appeared or
// disappeared, or ignore rules changed. An equal snapshot is still not published.
func (s *Store) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed()
}

// SetDiagnostics replaces the diagnostics of a document. An empty list says that the editor's tools find nothing in it. nil says that
// no tool looks at it.
func (s *Store) SetDiagnostics(path string, ds []Diagnostic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, known := s.diags[path]; known == (ds != nil) && slices.Equal(before, ds) {
		return
	}
	if s.shared || s.diags == nil {
		s.diags, s.shared = maps.Clone(s.diags), false
	}
	if s.diags == nil {
		s.diags = make(map[string][]Diagnostic)
	}
	if ds == nil {
		delete(s.diags, path)
	} else {
		s.diags[path] = append([]Diagnostic{}, ds...)
	}
	s.changed()
}

// Snapshot returns the state as it is now, without waiting for the debounce. It calls Keep, which may do I/O.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	snap := s.collect()
	s.mu.Unlock()
	return s.shareable(snap)
}

// Pause stops, or resumes, telling agents of the user's files: snapshots then have the roots and trust alone. Snapshot
// heeds it at once; subscribers hear of it like of any change. Everything else goes on, FollowOpen too.
func (s *Store) Pause(paused bool) {
	if s.paused.Swap(paused) == paused {
		return
	}
	s.mu.Lock()
	s.changed()
	s.mu.Unlock()
	s.pauses.Send(paused)
}

// Lend takes what the user of another companion looks at. key stands for that companion. active says that its user was active just now, so
// that the agents of Options.LentTo are told of that user, until another one is active. A nil snapshot takes it back. first says that this
// companion has lent nothing before.
func (s *Store) Lend(key any, snap *Snapshot, active bool) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.lent[key]
	if snap == nil {
		delete(s.lent, key)
		if s.lender == key {
			s.lender = nil
		}
	} else {
		s.lent[key] = snap
		if active {
			s.lender = key
		}
	}
	s.changed()
	return snap != nil && !known
}

// Withhold replaces the agents that must not be told of the user's files; see Snapshot.For. It takes effect as Pause does.
func (s *Store) Withhold(agents []string) {
	sorted := slices.Sorted(slices.Values(agents))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.withheld, sorted) {
		s.withheld = sorted
		s.changed()
	}
}

// Paused says whether telling is stopped by Pause.
func (s *Store) Paused() bool { return s.paused.Load() }

// FollowPause calls f when a pause begins or ends, on the goroutine that called Pause. After cancel returns, f is not called again.
func (s *Store) FollowPause(f func(paused bool)) (cancel func()) { return s.pauses.Add(f) }

// shareable returns the part of a snapshot that agents may be told.
func (s *Store) shareable(snap *Snapshot) *Snapshot {
	if s.paused.Load() {
		return snap.Bare()
	}
	return denied(kept(snap, s.keep), s.deniable, s.denied)
}

// collect puts a snapshot together, before Keep is asked. The caller holds mu.
func (s *Store) collect() *Snapshot {
	snap := &Snapshot{Roots: s.roots, Trusted: s.trusted, Diagnostics: s.diags, Withheld: s.withheld, Lent: s.lent[s.lender], LentTo: s.lentTo}
	s.shared = true
	if s.front != nil {
		snap.Active, snap.Cursor, snap.Selections = s.front.active, s.front.cursor, s.front.selections
	}
	if s.files == nil {
		s.files = s.merge()
	}
	snap.Files = s.files
	return snap
}

// merge makes one list of the files of all windows. It forgets the focus of
// files that no window has open. The caller holds mu.
func (s *Store) merge() []File {
	dirty := make(map[string]bool)
	for _, w := range s.windows {
		for path := range w.open {
			_, unsaved := w.dirty[path]
			dirty[path] = dirty[path] || unsaved
		}
	}
	files := make([]File, 0, len(dirty))
	for path, unsaved := range dirty {
		f := File{Path: path, Dirty: unsaved}
		if at, ok := s.focused[path]; ok {
			f.Focused = time.UnixMilli(at)
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(b.Focused.Compare(a.Focused), strings.Compare(a.Path, b.Path))
	})
	maps.DeleteFunc(s.focused, func(path string, _ int64) bool { _, open := dirty[path]; return !open })
	return files
}

// focus gives the newest focus time to the front window's document, when that is
// another document than before. The caller holds mu.
func (s *Store) focus() {
	active := ""
	if s.front != nil {
		active = s.front.active
	}
	if active == s.active {
		return
	}
	s.active = active
	if active != "" {
		// Times must grow even when the clock was set back, or several files had focus in one
		// millisecond: agents drop the active file when its time is not the newest.
		s.lastFocus = max(time.Now().UnixMilli(), s.lastFocus+1)
		s.focused[active] = s.lastFocus
		s.files = nil
	}
}
