package companion

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pollux-companion/pollux/internal/control"
)

// A keptBy is a keeper with the sessions that it holds.
type keptBy struct {
	*control.Client

	sessions []control.Session
}

// keptShift is where the number of a kept session has its keeper's process, so that no session of this companion's has it.
const keptShift = 16

// hears notes the sessions of a keeper.
func (c *Companion) hears(keeper *control.Client, all []control.Session) {
	var kept []control.Session
	for _, s := range all {
		if s.ID <= 0 || s.ID >= 1<<keptShift {
			continue // it asks somebody else
		}
		s.ID |= keeper.Status.PID << keptShift
		s.Label = keptLabel(s.Label, keeper.Status.PID)
		kept = append(kept, s)
	}
	c.mu.Lock()
	k := c.keepers[keeper.Path()]
	changed := k != nil && !slices.Equal(k.sessions, kept)
	if changed {
		k.sessions = kept
	}
	c.mu.Unlock()
	if changed {
		c.tellShares()
	}
}

// keptSessions lists the sessions that keepers hold and that hear what this one's user looks at.
func (c *Companion) keptSessions() (all []control.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(c.keepers)) {
		all = append(all, c.keepers[path].sessions...)
	}
	return all
}

// keeperOf returns the keeper of a kept session, and the number that the session has there; nil when it is none.
func (c *Companion) keeperOf(session int) (*control.Client, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.keepers {
		if session > 0 && k.Status.PID == session>>keptShift {
			return k.Client, session & (1<<keptShift - 1)
		}
	}
	return nil, 0
}

// keptLabel names a session that a keeper holds.
func keptLabel(label string, keeper int) string {
	return fmt.Sprintf("%s (kept by process %d)", label, keeper)
}

// forLabel names the session for which a keeper proposes; "" for `pollux diff`. No session of this companion's has that name, so no rule for
// one fits.
func forLabel(p control.Proposal) string {
	if p.For == "" {
		return ""
	}
	return keptLabel(p.For, p.By)
}
