package companion

import (
	"context"
	"errors"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/past"
)

// restoreFirst is how long a start waits for the diffs of the companion before it. Larger ones are restored while it serves already:
// a CLI tries to come back only once, and then the port must answer.
const restoreFirst = 100 * time.Millisecond

// restoreWithin is how long views wait until every diff is restored.
const restoreWithin = 10 * time.Second

// load reads a claimed record. A damaged one is as none, because this companion replaces it; lost says it.
func (c *Companion) load(resume *discovery.Resume) (*discovery.Record, error) {
	old, err := resume.Load(time.Now())
	if c.damaged = nil; errors.Is(err, discovery.ErrDamaged) {
		c.o.Log.Warn("not resuming", "err", err)
		c.damaged, err = err, nil
	}
	return old, err
}

// openJournal reads what the companion before this one left, and begins to write down what happens in this one.
func (c *Companion) openJournal(dir string) {
	c.journal = past.OpenJournal(dir, c.work.Secret, c.journalTrouble)
	if len(c.journal.Diffs()) == 0 && c.journal.Lost() == nil {
		c.damaged = nil // nothing was open
	}
	c.restored = make(chan struct{})
	c.onStop("journal", func(context.Context) error { c.journal.Close(); return nil })
}

// startJournal restores the diffs of the companion before this one, when it resumes, and writes down the edits of open
// diffs from now on. It follows edits before it restores, so that an edit of a restored diff is never missed.
func (c *Companion) startJournal() error {
	j := c.journal
	if j == nil {
		return nil // no companion will resume this one
	}
	unfollow := j.Follow(c.reg)
	c.onStop("edits", func(context.Context) error { unfollow(); return nil })
	left := j.Diffs()
	c.tasks.Go(func() {
		defer close(c.restored)
		c.comeback().BringBack(c.ctx, left)
	})
	select {
	case <-c.restored:
	case <-time.After(restoreFirst):
	}
	return nil
}

// comeback is how the proposals of the companion before this one come back.
func (c *Companion) comeback() past.Return {
	back := past.Return{Journal: c.journal, History: c.kept, Registry: c.reg, Agents: c.agents, Resumed: c.resumed, Log: c.o.Log}
	if c.o.Editor != nil {
		back.Shown = c.o.Editor.StillShown
	}
	back.Unread = func(err error) {
		c.unread.Store(&err)
		go c.tellTroubles() // on a goroutine: nothing there waits for pages
	}
	return back
}

// whole waits until the diffs of the companion before this one are open again. Until then nobody can decide them, and
// nobody may be told that there are none.
func (c *Companion) whole() {
	if c.journal == nil {
		return
	}
	timeout := time.NewTimer(restoreWithin)
	defer timeout.Stop()
	select {
	case <-c.restored:
	case <-c.ctx.Done():
	case <-timeout.C:
	}
}

// journalTrouble shows that a crash would lose something; with nil, that it would not any more. It is called with the journal's
// lock held, so it only starts goroutines.
func (c *Companion) journalTrouble(err error) {
	go c.tellTroubles() // on a goroutine: it asks the journal, whose lock is held here
	if err == nil {
		c.o.Log.Info("open proposals are safe from a crash again")
		return
	}
	c.o.Log.Warn("a crash would lose something", "err", err)
	if c.o.Editor != nil {
		go c.o.Editor.Complain(err.Error()) // on a goroutine: a slow editor must not hold the journal's lock
	}
}
