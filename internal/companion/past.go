package companion

import (
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/past"
)

// startHistory keeps past proposals (SPEC F-12). When it cannot, the companion works
// without a history.
func (c *Companion) startHistory() error {
	h, err := past.Open(filepath.Join(c.o.Dirs.State, "history"), c.o.Settings.History, c.work, c.reg, c.pastChanged)
	if err != nil {
		c.o.Log.Warn("past proposals are not kept", "err", err)
		return nil
	}
	c.onStop("history", h.Close)
	c.kept = h
	return nil
}

// shown are the texts of a past proposal as an editor shows them; of a rejected one, what was proposed.
func (b backend) shown(id string) (old, final string, err error) {
	t, err := b.PastTexts(id)
	if t.Final == "" && t.New != "" {
		t.Final = t.New
	}
	return t.Old, t.Final, err
}
