package companion

import (
	"context"
	"os"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/remind"
)

// startReminder tells a user who is elsewhere of proposals and questions that wait, if they want that.
func (c *Companion) startReminder() error {
	n := c.o.Settings.Notify
	if n.Seconds == 0 {
		return nil
	}
	ways := &remind.Ways{Desktop: n.Desktop, Command: n.Command, Roots: c.work.Roots, Log: c.o.Log}
	if n.Terminal {
		ways.Processes = c.watched
	}
	c.reminder = remind.New(remind.Options{After: time.Duration(n.Seconds) * time.Second, Used: c.store.Used, Tell: ways.Tell})
	cancel := c.reg.Watch(c.remember)
	for _, d := range c.reg.Pending() {
		c.reminder.Wait(d)
	}
	c.onStop("reminder", func(context.Context) error {
		cancel()
		c.reminder.Stop()
		return nil
	})
	return nil
}

// remember passes an event of a diff to the reminder.
func (c *Companion) remember(e review.Event) {
	switch {
	case e.Kind == review.Opened:
		if _, decided := e.Diff.Outcome(); !decided { // a late Opened must not outlive its Decided
			c.reminder.Wait(e.Diff)
		}
	case e.Kind == review.Decided:
		c.reminder.Done(e.Diff)
	case e.By != nil || e.Kind == review.RulesChanged:
		c.reminder.Touch()
	}
}

// watched returns processes whose terminals the user may be looking at: the editor, and the connected CLIs.
func (c *Companion) watched() []int {
	pids := []int{inTerminal(os.Getpid())}
	for _, s := range c.everySession() {
		if s.PID > 0 {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

// inTerminal returns the process, or else the nearest one above it, that has a terminal; 0 for none. Editors start their
// children without one, and newer Neovims themselves, too.
func inTerminal(pid int) int {
	for pid > 1 {
		if _, ok := proc.Terminal(pid); ok {
			return pid
		}
		info, _ := proc.Lookup(pid)
		pid = info.Parent
	}
	return 0
}
