package companion

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
)

// takeOver returns the record of the last companion of this workspace; nil when there
// is none to take over from, or when it still runs. A record that this companion must not inherit waits for the user's next one; this
// companion has another record then.
func (c *Companion) takeOver() *discovery.Record {
	c.recorded = c.work.Roots()
	var refused error
	for slot := 0; ; slot++ {
		resume, claimed, err := c.claimSlot(slot)
		if slot = claimed; err != nil {
			c.o.Log.Info("not resuming", "err", err)
			if !errors.Is(err, discovery.ErrLive) {
				c.unsaved = err
			} else if refused != nil {
				c.unsaved = fmt.Errorf("no record is left for this companion: %w", refused)
			}
			return nil // the records belong to those companions
		}
		old, err := c.load(resume)
		if err != nil {
			c.onStop("claim", func(context.Context) error { resume.Release(); return nil })
			c.o.Log.Info("not resuming", "err", err)
			c.unsaved = err
			return nil // don't replace a record that cannot be trusted
		}
		if old != nil {
			if err := c.mayInherit(old); err != nil {
				c.o.Log.Warn("not resuming", "err", err)
				refused = err
				resume.Release()
				continue
			}
		}
		c.onStop("claim", func(context.Context) error { resume.Release(); return nil })
		c.resume = resume
		// Beside another companion, a record matters only for the sessions that wait for it: of two that were killed, both come back.
		if other := c.sharing(); other != nil && (old == nil || len(old.Sessions) == 0 && !resume.HasJournal()) {
			c.o.Log.Info("not resuming: another companion serves this workspace", "other", other.PID)
			return nil
		}
		return old
	}
}

// claimSlot claims the first free record of this editor and workspace, from a slot on, and says which. With none it fails with
// discovery.ErrLive.
func (c *Companion) claimSlot(from int) (resume *discovery.Resume, slot int, err error) {
	err = discovery.ErrLive
	for slot = from; slot < discovery.Slots && errors.Is(err, discovery.ErrLive); slot++ {
		resume = discovery.NewResume(c.o.Dirs.State, c.o.IDE.Name, c.recorded, slot)
		if slot == 0 {
			err = c.claim(resume)
		} else {
			err = resume.Claim()
		}
	}
	return resume, slot - 1, err
}

// claim claims a record. It waits for a companion that has the record but is just stopping, and so does not answer
// any more. A companion or keeper that answers keeps the record.
func (c *Companion) claim(resume *discovery.Resume) error {
	deadline := time.Now().Add(claimWithin)
	for {
		err := resume.Claim()
		if !errors.Is(err, discovery.ErrLive) || c.sharing() != nil || c.keeper() || time.Now().After(deadline) {
			return err
		}
		select {
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		c.lookAround() // the holder may also be just starting
	}
}
