package companion

import (
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/settings"
)

func (c *Companion) pause() settings.Pause { return settings.PauseOf(c.o.Dirs.State, c.work.Roots()) }

// startPause takes over the pause of an earlier companion.
func (c *Companion) startPause() {
	if c.pause().Holds() {
		c.store.Pause(true)
	}
	c.store.FollowPause(c.paused) // until Shut
}

// paused writes the start or end of a pause down for the next companion, and tells the views and reviewers.
func (c *Companion) paused(now bool) {
	if err := c.pause().Set(now); err != nil {
		c.o.Log.Warn("the next companion will not know whether sharing is paused", "err", err)
	}
	go c.tellTroubles()
}

// pauseTrouble says that agents are told nothing; nil when no pause holds.
func (c *Companion) pauseTrouble() *control.Trouble {
	if !c.store.Paused() {
		return nil
	}
	return &control.Trouble{
		ID: control.PausedTrouble, What: "sharing is paused: agents are not told what you look at",
		Why: "models know of no open file, cursor, selection or problem; proposals come as ever",
		Do:  "pollux resume, or the editor's own command",
	}
}
