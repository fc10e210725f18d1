package companion

import (
	"context"
	"errors"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/journal"
)

// restoreFirst is how long a start waits for the diffs of the companion before it. Larger ones are restored while it serves already:
// a CLI tries to come back only once, and then the port must answer.
const restoreFirst = 100 * time.Millisecond

// restoreWithin is how long views wait until every diff is restored.
const restoreWithin = 10 * time.Second

// errSession: this companion did not issue the session's id.
var errSession = errors.New("its session is not known")

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
	c.journal = journal.Open(dir, c.journalTrouble)
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
		c.bringBack(left)
	})
	select {
	case <-c.restored:
	case <-time.After(restoreFirst):
	}
	return nil
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

// bringBack opens the diffs of an earlier companion again, and hands outcomes that a CLI may not have heard to its session.
// A crash in here loses nothing: the journal keeps each entry until its outcome was heard or the entry is forgotten.
func (c *Companion) bringBack(left []journal.Diff) {
	unheard := map[string]*mcp.Unheard{}
	var order []string
	for _, d := range left {
		if c.ctx.Err() != nil {
			return // the rest stays in the journal for the next companion
		}
		texts, err := c.journal.Texts(d.ID)
		switch {
		case err != nil:
			c.o.Log.Warn("a diff of the companion before this one cannot be read", "err", err)
			c.unread.Store(&err)
			go c.tellTroubles() // on a goroutine: nothing here waits for pages
		case !c.resumed:
			err = errSession
		case len(d.Outcomes) > 0:
			if unheard[d.Session] == nil {
				unheard[d.Session] = &mcp.Unheard{Session: d.Session, Seq: c.journal.Newest(d.Session).Seq}
				order = append(order, d.Session)
			}
			addUnheard(unheard[d.Session], d, texts.Text)
			c.keepDecided(d, texts)
			continue
		default:
			err = c.reopen(d, texts)
		}
		if err != nil && c.ctx.Err() == nil {
			c.o.Log.Info("a diff of the companion before this one is not restored", "err", err)
			c.keepLost(d, texts)
			c.journal.Forget(d.ID)
		}
	}
	for _, session := range order {
		if u := *unheard[session]; !c.agents.Bring(u) && c.ctx.Err() == nil {
			c.o.Log.Info("outcomes for a session that is not known", "outcomes", len(u.Outcomes))
			c.journal.Ended(session, true)
		}
	}
}

func addUnheard(u *mcp.Unheard, d journal.Diff, text string) {
	for _, o := range d.Outcomes {
		u.Life = o.Life // all are of one life: a session keeps its life while outcomes wait
		u.Outcomes = append(u.Outcomes, mcp.UnheardOutcome{Seq: o.Seq, ID: d.ID, Path: d.Key, As: o.As, Content: text})
	}
}

// reopen opens a diff of an earlier companion again, under its old id, for the
// session that still waits for its outcome.
func (c *Companion) reopen(d journal.Diff, t journal.Texts) error {
	owner, ok := c.agents.Adopt(d.Session)
	if !ok {
		return errSession
	}
	opened := d.Opened
	if now := time.Now(); opened.After(now) { // the clock was set back; later diffs must not look older
		opened = now
	}
	p := review.Proposal{Key: d.Key, Path: d.Path, Old: t.Old, IsNew: d.IsNew, New: t.New, Title: d.Title}
	diff, err := c.reg.Restore(owner, d.ID, c.newestOf(d, t), t.Agreed, opened, p)
	if err == nil {
		c.journal.Restored(diff, t.Text)
	}
	return err
}

// newestOf returns the newest text of a diff of an earlier companion. What the editor still shows is newer than the journal's text.
func (c *Companion) newestOf(d journal.Diff, t journal.Texts) string {
	if c.o.Editor != nil {
		if text, ok := c.o.Editor.StillShown(d.ID); ok {
			return text
		}
	}
	return t.Text
}

// keepLost adds a diff to the history (SPEC F-12) whose session cannot be told its outcome any more, so that the user's
// edits are not lost.
func (c *Companion) keepLost(d journal.Diff, t journal.Texts) {
	t.Text = c.newestOf(d, t)
	kind := review.Withdrawn
	if len(d.Outcomes) > 0 {
		kind = kindOf(d)
	}
	c.keepPast(d, t, kind)
}

// keepDecided adds a decided diff to the history, when the companion before this one ended before it wrote that.
func (c *Companion) keepDecided(d journal.Diff, t journal.Texts) {
	if c.kept == nil {
		return
	}
	if _, err := c.kept.Get(d.ID); errors.Is(err, history.ErrNoEntry) {
		c.keepPast(d, t, kindOf(d))
	}
}

func kindOf(d journal.Diff) review.Kind {
	if d.Outcomes[0].As == mcp.Accepted {
		return review.Accepted
	}
	return review.Rejected
}

func (c *Companion) keepPast(d journal.Diff, t journal.Texts, kind review.Kind) {
	if c.kept == nil {
		return
	}
	if kind == review.Rejected {
		t.Text = ""
	}
	c.kept.Keep(history.Entry{
		Info: history.Info{
			ID: d.ID, Path: d.Path, Title: d.Title, Owner: "a session of the companion before this one",
			Opened: d.Opened, Settled: time.Now(), Outcome: kind, Edited: kind != review.Rejected && t.Text != t.New, IsNew: d.IsNew,
		},
		Old: t.Old, New: t.New, Final: t.Text,
	})
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
