package companion

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/safefile"
)

const (
	// newAfter is how long a diff must be open to be written down: those that are
	// decided at once, by a rule or a busy agent, cost nothing.
	newAfter = 250 * time.Millisecond
	// editsEvery bounds how often the user's edits are written down.
	editsEvery = time.Second
	// maxPage bounds one diff on disk, in bytes: three texts of 16 MiB, escaped.
	maxPage = 128 << 20
	// unheardFile is in the journal's folder while a CLI whose stream is down
	// has not heard of its outcomes.
	unheardFile = "unheard"
)

// A journalPage is one open diff on disk, for a companion that comes back
// after a crash (SPEC L-3): its CLI still waits for the outcome.
type journalPage struct {
	Session string    `json:"session"` // gemini.SessionID of its owner
	ID      string    `json:"id"`
	Key     string    `json:"key"`
	Path    string    `json:"path"`
	Title   string    `json:"title"`
	Opened  time.Time `json:"opened"`
	IsNew   bool      `json:"isNew,omitempty"`
	Old     string    `json:"old"`
	New     string    `json:"new"`
	Text    string    `json:"text"` // as the user edited it
}

// A journal keeps the open diffs of one registry in a folder, a private file
// each, from follow to close, and in one more file the outcomes that wait for
// a CLI whose stream is down. A diff's file goes only after its outcome has
// been sent or is in that other file, so that a crash at any time loses neither. Goroutine: the one that writes, started by
// follow and awaited by close.
type journal struct {
	dir     string
	unheard func() []gemini.Unheard // what waits; set before follow
	cancel  context.CancelFunc
	wake    chan struct{} // one place: there is something to write
	done    chan struct{} // closed when the writer has ended

	mu      sync.Mutex              // guards the below
	changes map[string]*review.Diff // by id; nil for one that was settled
	known   map[string]bool         // the ids that have a file
	waiting bool                    // what unheard says may have changed
	kept    bool                    // there is an unheardFile
}

// newJournal makes the journal of a folder; unheard is gemini.Server's method.
func newJournal(dir string, unheard func() []gemini.Unheard) *journal {
	return &journal{
		dir:     dir,
		unheard: unheard,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		changes: map[string]*review.Diff{},
		known:   map[string]bool{},
	}
}

// follow writes down what happens in r from now on.
func (j *journal) follow(r *review.Registry) {
	ctx, cancel := context.WithCancel(context.Background())
	unwatch := r.Watch(j.note)
	j.cancel = func() { unwatch(); cancel() }
	go j.write(ctx)
}

func (j *journal) note(e review.Event) {
	j.mu.Lock()
	id := e.Diff.ID()
	switch {
	case e.Outcome == nil:
		j.changes[id] = e.Diff
	case j.known[id]:
		j.changes[id] = nil
	default:
		delete(j.changes, id) // it was never written
	}
	j.mu.Unlock()
	j.poke()
}

// noteWaiting is gemini.Options.Waiting.
func (j *journal) noteWaiting() {
	j.mu.Lock()
	j.waiting = true
	j.mu.Unlock()
	j.poke()
}

func (j *journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// close ends the writing and removes the folder: after an orderly stop every diff has had its outcome.
func (j *journal) close() {
	j.cancel()
	<-j.done
	_ = os.RemoveAll(j.dir)
}

func (j *journal) write(ctx context.Context) {
	defer close(j.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.wake:
		}
		timer := time.NewTimer(j.delay())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			j.flush()
		}
	}
}

// delay is short for a diff that has no file yet, and nothing for one that
// needs none any more or when there is nothing to do.
func (j *journal) delay() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.changes) == 0 || j.waiting {
		return 0
	}
	delay := editsEvery
	for id, d := range j.changes {
		switch {
		case d == nil:
			return 0
		case !j.known[id]:
			delay = newAfter
		}
	}
	return delay
}

func (j *journal) flush() {
	j.mu.Lock()
	changes := j.changes
	j.changes = map[string]*review.Diff{}
	for id, d := range changes {
		if d != nil {
			j.known[id] = true // before it is, so that an outcome from now on is noted
		} else {
			delete(j.known, id)
		}
	}
	waiting := j.waiting
	j.waiting = false
	j.mu.Unlock()
	if waiting {
		j.keepWaiting()
	}
	for id, d := range changes {
		if d == nil {
			_ = os.Remove(j.path(id))
		} else {
			_ = j.save(d) // the next change tries again; without the file a crash rejects the diff, no more
		}
	}
}

// keepWaiting writes down what waits for streams that are down, or that nothing does any more.
func (j *journal) keepWaiting() {
	unheard := j.unheard()
	if len(unheard) > 0 {
		j.kept = true
		_ = saveUnheard(j.dir, unheard) // the next change tries again
	} else if j.kept {
		j.kept = false
		_ = os.Remove(filepath.Join(j.dir, unheardFile))
	}
}

func saveUnheard(dir string, unheard []gemini.Unheard) error {
	data, err := json.Marshal(unheard)
	if err != nil {
		return err
	}
	if err := safefile.PrivateDir(dir); err != nil {
		return err
	}
	return safefile.Write(filepath.Join(dir, unheardFile), data, &safefile.Options{Volatile: true})
}

func (j *journal) save(d *review.Diff) error {
	session := gemini.SessionID(d.Owner())
	if session == "" {
		return nil
	}
	p := d.Proposal()
	text, _ := d.Text()
	data, err := json.Marshal(journalPage{
		Session: session, ID: d.ID(), Key: p.Key, Path: p.Path, Title: p.Title, Opened: d.Opened(),
		IsNew: p.IsNew, Old: p.Old, New: p.New, Text: text,
	})
	if err != nil {
		return err
	}
	if err := safefile.PrivateDir(j.dir); err != nil {
		return err
	}
	return safefile.Write(j.path(d.ID()), data, &safefile.Options{Volatile: true})
}

// path is the file of a diff; ids are safe in file names as they are in URLs.
func (j *journal) path(id string) string { return filepath.Join(j.dir, id+".json") }

// read returns the diffs that a companion before this one had open and
// forgets those that cannot be read.
func (j *journal) read() []journalPage {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil
	}
	var pages []journalPage
	for _, e := range entries {
		path := filepath.Join(j.dir, e.Name())
		if e.Name() == unheardFile {
			continue
		}
		var p journalPage
		data, err := safefile.ReadPrivate(path, maxPage)
		if err == nil {
			err = json.Unmarshal(data, &p)
		}
		if err != nil || j.path(p.ID) != path {
			_ = os.Remove(path)
			continue
		}
		pages = append(pages, p)
	}
	return pages
}

// startJournal brings back the diffs of the companion before this one when it resumes, and
// writes down those that are open from now on.
func (c *Companion) startJournal() error {
	j := c.journal
	if j == nil {
		return nil // nobody will resume this one
	}
	if c.resumed {
		c.bringUnheard(j)
	} else { // of one that nobody can take over any more
		for _, p := range j.read() {
			c.keepLost(p)
		}
		_ = os.RemoveAll(j.dir)
	}
	j.follow(c.reg)
	c.onStop("journal", func(context.Context) error { j.close(); return nil })
	if !c.resumed {
		return nil
	}
	for _, p := range j.read() {
		if err := c.restore(p); err != nil {
			c.o.Log.Info("a diff of the companion before this one is not restored", "err", err)
			c.keepLost(p)
			_ = os.Remove(j.path(p.ID))
			continue
		}
		j.mu.Lock()
		j.known[p.ID] = true
		j.mu.Unlock()
	}
	return nil
}

// stopAgent ends the sessions; what one of them has not heard waits for the companion that comes back.
func (c *Companion) stopAgent(ctx context.Context) error {
	err := c.agent.Shutdown(ctx)
	unheard := c.agent.Unheard()
	if c.resume == nil || len(unheard) == 0 {
		return err
	}
	return errors.Join(err, saveUnheard(c.resume.Journal(), unheard))
}

// bringUnheard hands the outcomes that the last companion could not deliver to
// this one's agent. The file stays until they are on their way.
func (c *Companion) bringUnheard(j *journal) {
	data, err := safefile.ReadPrivate(filepath.Join(j.dir, unheardFile), maxPage)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var unheard []gemini.Unheard
	if err == nil {
		err = json.Unmarshal(data, &unheard)
	}
	if err != nil {
		c.o.Log.Warn("outcomes of the companion before this one are lost", "err", err)
	}
	for _, u := range unheard {
		if !c.agent.Bring(u) {
			c.o.Log.Info("outcomes for a session that is not known", "outcomes", len(u.Outcomes))
		}
	}
	j.kept = true
	j.noteWaiting()
}
