package companion

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/workspace"
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
	c.past, c.kept = past{h, c.work}, h
	return nil
}

// past gives the page the history.
type past struct {
	h    *history.History
	work *workspace.Workspace
}

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

// shown are the texts of a past proposal as an editor shows them; of a rejected one, what was proposed.
func (b backend) shown(id string) (old, final string, err error) {
	t, err := b.Entry(id)
	if t.Final == "" && t.New != "" {
		t.Final = t.New
	}
	return t.Old, t.Final, err
}

// Undo takes an entry's change back, and notes that. With a new file go the folders that were new with it, if they are empty.
func (p past) Undo(id string) error {
	e, err := p.h.Get(id)
	if err != nil {
		return err
	}
	if e.Outcome == review.Rejected {
		return fmt.Errorf("a rejected change was never written; there is nothing to undo: %w", fs.ErrPermission)
	}
	err = p.work.Restore(e.Path, e.Final, e.Old, e.IsNew)
	var conflict *workspace.ConflictError
	if errors.As(err, &conflict) && e.Undone {
		return fmt.Errorf("%s has been undone already: %w", filepath.Base(e.Path), err)
	}
	if err != nil {
		return err
	}
	if e.IsNew {
		p.work.RemoveEmpty(e.Path, e.NewDirs)
	}
	return p.h.SetUndone(id)
}

func entryOf(i history.Info) web.Entry {
	return web.Entry{
		ID: i.ID, Path: i.Path, Title: i.Title, Owner: i.Owner,
		At: i.Settled, Outcome: i.Outcome, Edited: i.Edited,
		Undoable: i.Outcome != review.Rejected, Undone: i.Undone,
	}
}

var _ web.History = past{}
