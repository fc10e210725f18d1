// Package history keeps proposals and their outcomes in a bounded set of files, so
// that an accepted change can be looked at again and undone (SPEC F-12). It writes none
// of the user's files: undoing is the caller's work.
package history

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// ErrNoEntry: there is no such entry, or not any more. It is an fs.ErrNotExist.
var ErrNoEntry = fmt.Errorf("no such entry in the history, it may have grown too old: %w", fs.ErrNotExist)

// An Info is an entry without its texts.
type Info struct {
	ID      string    `json:"id"` // the diff's
	Path    string    `json:"path"`
	Title   string    `json:"title"`
	Owner   string    `json:"owner"` // the session's label
	Opened  time.Time `json:"opened"`
	Settled time.Time `json:"settled"`
	// Outcome is Withdrawn also for a change that was decided in the agent's own terminal.
	Outcome review.Kind `json:"outcome"`
	Edited  bool        `json:"edited"` // by the user, before the outcome
	Policy  bool        `json:"policy"` // a rule decided, not the user
	IsNew   bool        `json:"isNew"`  // there was no file: to undo, remove it
	// NewDirs is how many of the folders above a new file were not there either.
	NewDirs int `json:"newDirs,omitempty"`
	// Undone says that the change has been taken back.
	Undone bool `json:"undone,omitempty"`
	// Sum is a checksum of the final text, without line endings and byte order mark.
	Sum string `json:"sum"`
}

// An Entry is one proposal and its outcome, with the texts byte for byte.
type Entry struct {
	Info
	Old   string // "" when IsNew
	New   string // the proposal
	Final string // the accepted or withdrawn text; for a rejected proposal, the user's edit, or ""
}

// Undoable says whether the entry's change can be undone: it was not rejected, and the
// file still holds its final text. Line endings and the byte order mark do not count,
// since agents propose LF and write what the file had. current is the file's text, nil
// when there is no file.
func (i Info) Undoable(current *string) bool {
	return current != nil && i.Outcome != review.Rejected && i.Sum == sum(*current)
}

// sum returns Info.Sum of a text.
func sum(s string) string { return hash(text.ToLF(s)) }

// Options configure a History; nil means the zero value.
type Options struct {
	// Roots are the workspace's folders, absolute. Each set of roots has its own history.
	Roots []string
	// Off keeps nothing new. Existing entries can be read until they are too old.
	Off bool
	// MaxEntries is 100 when 0, MaxBytes 50 MB, MaxAge 7 days. Entries that no person decided go first: the oldest
	// ones of the session that takes most space.
	MaxEntries int
	MaxBytes   int64
	MaxAge     time.Duration
	// Secret says whether proposals for a file must not be kept; nil keeps all. It may do I/O, and is called from several goroutines.
	Secret func(path string) bool
	// Changed, when not nil, is called when an entry has been written: on the history's own goroutine, and not after Close; or on that of SetUndone.
	Changed func()
}

func (o *Options) orDefault() Options {
	v := Options{}
	if o != nil {
		v = *o
	}
	if v.MaxEntries == 0 {
		v.MaxEntries = 100
	}
	if v.MaxBytes == 0 {
		v.MaxBytes = 50_000_000
	}
	if v.MaxAge == 0 {
		v.MaxAge = 7 * 24 * time.Hour
	}
	return v
}

// A History belongs to one workspace and lives as long as one companion. Several
// companions may use the same folder at the same time. Its methods may be called from
// any goroutine.
// Goroutines: one, started by Open, that writes what Follow has queued; Close stops it.
type History struct {
	opt  Options
	dir  string // of this workspace's entries
	done chan struct{}
	wake chan struct{} // buffered for one wake-up: something was queued, or closed is set

	index index // of dir

	mu     sync.Mutex // guards all below
	queue  []Entry    // oldest first; bounded as the history is
	closed bool
	cancel []func() // ends what Follow began
}

// Open opens the history of a workspace. dir is a folder of the user's state, and is
// made when it is missing.
func Open(dir string, o *Options) (*History, error) {
	h := &History{opt: o.orDefault(), done: make(chan struct{}), wake: make(chan struct{}, 1)}
	h.dir = filepath.Join(dir, folder(h.opt.Roots))
	h.index.dir = h.dir
	if err := safefile.PrivateDir(dir); err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	go h.write()
	return h, nil
}

// Prune removes entries that are too old, of other workspaces too, and entries beyond
// the bounds of the options.
func (h *History) Prune() {
	pruneWorkspaces(filepath.Dir(h.dir), h.opt.MaxAge)
	h.prune()
}

// folder names a workspace's folder. The order of roots does not count.
func folder(roots []string) string {
	sorted := slices.Sorted(slices.Values(roots))
	h := sha256.Sum256([]byte(strings.Join(sorted, "\x00")))
	return hex.EncodeToString(h[:8])
}

// Follow keeps every diff of r that is settled from now on, until Close. The writing
// is done on the history's goroutine, so it delays nobody.
func (h *History) Follow(r *review.Registry) {
	if h.opt.Off {
		return
	}
	cancel := r.Watch(func(e review.Event) {
		if e.Outcome != nil {
			h.add(entryOf(e.Diff, *e.Outcome))
		}
		if e.Lost != "" { // no view has this text any more
			h.add(lostOf(e.Diff, e.Lost))
		}
	})
	h.mu.Lock()
	closed := h.closed
	h.cancel = append(h.cancel, cancel)
	h.mu.Unlock()
	if closed {
		cancel()
	}
}

// entryOf makes an entry. Its old text is what the file held when the diff was settled:
// the agent writes over that, and undoing brings it back.
func entryOf(d *review.Diff, o review.Outcome) Entry {
	p, base := d.Proposal(), d.Now().Base
	if edited, _ := d.Text(); o.Kind == review.Rejected && edited != p.New {
		o.Content, o.Edited = edited, true
	}
	e := Entry{
		Info: Info{
			ID: d.ID(), Path: p.Path, Title: p.Title, Owner: d.Label(), Opened: d.Opened(), Settled: time.Now(),
			Outcome: o.Kind, Edited: o.Edited, Policy: o.Policy, IsNew: !base.Exists,
		},
		Old: base.Text, New: p.New, Final: o.Content,
	}
	if e.IsNew && o.Kind != review.Rejected {
		e.NewDirs = missing(filepath.Dir(p.Path))
	}
	return e
}

// missing counts the folders from dir upwards that are not there.
func missing(dir string) (n int) {
	for up := filepath.Dir(dir); up != dir; dir, up = up, filepath.Dir(up) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		n++
	}
	return n
}

// lostOf makes an entry of a text that an edit in another view has replaced in an open diff.
func lostOf(d *review.Diff, text string) Entry {
	e := entryOf(d, review.Outcome{Kind: review.Withdrawn, Content: text, Edited: true})
	e.ID = rand.Text()
	e.Title += " (an edit that another one replaced)"
	return e
}

// Keep adds an entry that Follow could not see being settled, because its companion had
// ended. It delays nobody either.
func (h *History) Keep(e Entry) {
	if !h.opt.Off {
		h.add(e)
	}
}

// byPerson says whether a person decided the entry, or edited a proposal that the agent took back. A rule is no person.
func (i Info) byPerson() bool {
	return i.Outcome != review.Withdrawn && !i.Policy || i.Outcome == review.Withdrawn && i.Edited
}

// add queues an entry. The queue has the bounds of a whole history: more would be pruned
// as soon as it was written.
func (h *History) add(e Entry) {
	if h.opt.Secret != nil && h.opt.Secret(e.Path) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.queue = append(h.queue, e)
	total := int64(0)
	for _, q := range h.queue {
		total += q.size()
	}
	for len(h.queue) > h.opt.MaxEntries || total > h.opt.MaxBytes {
		i := leastWanted(h.queue, func(q Entry) (int64, bool, string) { return q.size(), q.byPerson(), q.Owner })
		total -= h.queue[i].size()
		h.queue = slices.Delete(h.queue, i, i+1)
	}
	h.signal()
}

func (h *History) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// write is the goroutine: it empties the queue whenever it is woken, and ends
// when the history is closed and the queue empty.
func (h *History) write() {
	defer close(h.done)
	for range h.wake {
		for {
			h.mu.Lock()
			if len(h.queue) == 0 {
				closed := h.closed
				h.mu.Unlock()
				if closed {
					return
				}
				break
			}
			e := h.queue[0]
			h.queue[0] = Entry{}
			h.queue = h.queue[1:]
			h.mu.Unlock()
			if err := h.save(e); err != nil {
				slog.Warn("an entry of the history could not be written", "id", e.ID, "error", err)
			}
			h.prune()
			if h.opt.Changed != nil {
				h.opt.Changed()
			}
		}
	}
}

// Close ends following and returns when everything is written. When that takes longer
// than ctx, it returns ctx's error, and unwritten entries may be lost.
func (h *History) Close(ctx context.Context) error {
	h.mu.Lock()
	cancel := h.cancel
	h.cancel = nil
	h.mu.Unlock()
	for _, c := range cancel {
		c() // waits for a call in progress, so everything is queued afterwards
	}
	h.mu.Lock()
	h.closed = true
	h.signal()
	h.mu.Unlock()
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the history was not written in time: %w", ctx.Err())
	}
}

// List returns the kept entries, newest first. It removes damaged entries. A new entry
// appears some time after its diff was settled.
func (h *History) List() ([]Info, error) {
	files, err := entryFiles(h.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	var list []Info
	for _, f := range slices.Backward(files) {
		head, err := readHead(filepath.Join(h.dir, f.name))
		if err == nil && head.ID != f.id {
			err = errDamaged
		}
		if err != nil {
			h.discard(f.name, err)
			continue
		}
		list = append(list, head.Info)
	}
	return list, nil
}

// Get returns one entry with its texts. It fails with ErrNoEntry when there is none.
func (h *History) Get(id string) (Entry, error) {
	files, err := entryFiles(h.dir)
	if err != nil {
		return Entry{}, fmt.Errorf("reading the history: %w", err)
	}
	i := slices.IndexFunc(files, func(f entryFile) bool { return f.id == id })
	if i < 0 {
		return Entry{}, ErrNoEntry
	}
	e, err := readEntry(filepath.Join(h.dir, files[i].name))
	if err == nil && e.ID != id {
		err = errDamaged
	}
	switch {
	case err == nil:
		return e, nil
	case errors.Is(err, fs.ErrNotExist):
		return Entry{}, ErrNoEntry
	case errors.Is(err, errDamaged):
		h.discard(files[i].name, err)
		return Entry{}, ErrNoEntry
	default:
		return Entry{}, fmt.Errorf("reading the history: %w", err)
	}
}

// SetUndone notes that an entry's change has been taken back. ErrNoEntry when there is none.
func (h *History) SetUndone(id string) error {
	e, err := h.Get(id)
	if err != nil {
		return err
	}
	e.Undone = true
	if err := h.save(e); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	if h.opt.Changed != nil {
		h.opt.Changed()
	}
	return nil
}
