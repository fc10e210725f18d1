// Package past is what outlives a companion: the history of decided proposals as views show it and undo from it, and the way back of what
// an earlier companion's journal holds.
package past

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/settings"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// A History keeps past proposals (SPEC F-12), and takes them back.
type History struct {
	*history.History
	work *workspace.Workspace
}

// Open opens the history of a workspace in a folder, and follows the registry. changed is called when entries change.
func Open(dir string, o settings.History, work *workspace.Workspace, reg *review.Registry, changed func()) (*History, error) {
	h, err := history.Open(dir, &history.Options{
		Roots:      work.Roots(),
		Off:        !o.Enabled,
		MaxEntries: o.Entries,
		MaxBytes:   o.Bytes,
		MaxAge:     o.Age,
		Secret:     work.Secret,
		Changed:    changed,
	})
	if err != nil {
		return nil, err
	}
	h.Follow(reg)
	return &History{h, work}, nil
}

// errNeverWritten says what cannot be undone. For callers that tell errors apart it is one of permission.
var errNeverWritten = neverWritten{}

type neverWritten struct{}

func (neverWritten) Error() string {
	return "a rejected change was never written; there is nothing to undo"
}
func (neverWritten) Is(target error) bool { return target == fs.ErrPermission }

// Undo takes an entry's change back, and notes that. With a new file go the folders that were new with it, if they are empty.
func (h *History) Undo(id string) error {
	e, err := h.Get(id)
	if err != nil {
		return err
	}
	if e.Outcome == review.Rejected {
		return errNeverWritten
	}
	err = h.work.Restore(e.Path, e.Final, e.Old, e.IsNew)
	var conflict *workspace.ConflictError
	if errors.As(err, &conflict) && e.Undone {
		return fmt.Errorf("%s has been undone already: %w", filepath.Base(e.Path), err)
	}
	if err != nil {
		return err
	}
	if e.IsNew {
		h.work.RemoveEmpty(e.Path, e.NewDirs)
	}
	return h.SetUndone(id)
}
