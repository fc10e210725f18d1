package companion

import (
	"errors"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// errSession: the session is not one that this companion can verify.
var errSession = errors.New("its session is not known")

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
