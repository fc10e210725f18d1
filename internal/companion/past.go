package companion

import (
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/history"
)

// startHistory keeps past proposals (SPEC F-12). When it cannot, the companion works
// without a history.
func (c *Companion) startHistory() error {
	o := c.o.Settings.History
	h, err := history.Open(filepath.Join(c.o.Dirs.State, "history"), &history.Options{
		Roots:      c.work.Roots(),
		Off:        !o.Enabled,
		MaxEntries: o.Entries,
		MaxBytes:   o.Bytes,
		MaxAge:     o.Age,
		Secret:     c.work.Secret,
		Changed:    c.pastChanged,
	})
	if err != nil {
		c.o.Log.Warn("past proposals are not kept", "err", err)
		return nil
	}
	h.Follow(c.reg)
	c.onStop("history", h.Close)
	c.past, c.kept = past{h}, h
	return nil
}

// past gives the page the history.
type past struct{ h *history.History }

func (p past) List() ([]web.Entry, error) {
	infos, err := p.h.List()
	entries := make([]web.Entry, len(infos))
	for i, info := range infos {
		entries[i] = entryOf(info)
	}
	return entries, err
}

func (p past) Read(id string) (web.Entry, web.Texts, error) {
	e, err := p.h.Get(id)
	return entryOf(e.Info), web.Texts{Old: e.Old, New: e.New, Final: e.Final, IsNew: e.IsNew}, err
}

func entryOf(i history.Info) web.Entry {
	return web.Entry{
		ID: i.ID, Path: i.Path, Title: i.Title, Owner: i.Owner,
		At: i.Settled, Outcome: i.Outcome, Edited: i.Edited,
		Undoable: i.Outcome != review.Rejected,
	}
}

var _ web.History = past{}
