package companion

import (
	"errors"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/history"
)

// errSession: the session is not one that this companion can verify.
var errSession = errors.New("its session is not known")

// keepLost makes a past proposal (SPEC F-12) of a diff of an earlier life whose session cannot be
// told its outcome any more: what the user wrote into it is not lost with it.
func (c *Companion) keepLost(p journalPage) {
	if c.kept == nil {
		return
	}
	if c.o.Editor != nil {
		if text, ok := c.o.Editor.StillShown(p.ID); ok {
			p.Text = text // newer than the page
		}
	}
	c.kept.Keep(history.Entry{
		Info: history.Info{
			ID: p.ID, Path: p.Path, Title: p.Title, Owner: "a session of the companion before this one",
			Opened: p.Opened, Settled: time.Now(), Outcome: review.Withdrawn, Edited: p.Text != p.New, IsNew: p.IsNew,
		},
		Old: p.Old, New: p.New, Final: p.Text,
	})
}

// restore opens a diff of an earlier life again, under its old id, for the
// session that still waits for its outcome.
func (c *Companion) restore(p journalPage) error {
	owner, ok := c.agent.Adopt(p.Session)
	if !ok {
		return errSession
	}
	_, err := c.reg.Restore(owner, p.ID, p.Text, p.Opened, review.Proposal{
		Key: p.Key, Path: p.Path, Old: p.Old, IsNew: p.IsNew, New: p.New, Title: p.Title,
	})
	return err
}
