package gemini

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// call runs one of the two tools (SPEC F-1). What the CLI got wrong in its
// arguments is an answer that its model can read, not a protocol error.
func (s *session) call(ctx context.Context, m wire.Message, reply func([]byte)) {
	switch c := &m.Call; {
	case c.Name.State != wire.Good:
		reply(wire.Error(m.ID, wire.CodeInvalidParams, "params.name must be the name of a tool"))
	case c.Name.Value == wire.ToolOpenDiff:
		s.openDiff(ctx, m, reply)
	case c.Name.Value == wire.ToolCloseDiff:
		s.closeDiff(ctx, m, reply)
	default:
		reply(wire.Error(m.ID, wire.CodeInvalidParams, "unknown tool; there are openDiff and closeDiff"))
	}
}

// openDiff shows a proposal and answers when its view is open (SPEC F-2). The
// answer leaves before any outcome can (review.Registry.Open's deliver).
func (s *session) openDiff(ctx context.Context, m wire.Message, reply func([]byte)) {
	p, err := s.proposal(&m.Call)
	if err == nil {
		err = s.mayDecide(ctx)
	}
	if err != nil {
		reply(wire.Failed(m.ID, err.Error()))
		return
	}
	s.forget(p.Key)
	c := s.begun(ctx, string(m.ID))
	defer s.over(c)
	_, err = s.server.o.Registry.Open(c, s, p, func(d *review.Diff) {
		if s.server.o.Journal != nil {
			s.server.o.Journal.Opened(s.id, d)
		}
		reply(wire.Opened(m.ID))
	})
	if err != nil {
		reply(wire.Failed(m.ID, explain(p.Key, err)))
	}
}

// proposal checks the arguments and reads the file's old text.
func (s *session) proposal(c *wire.Call) (p review.Proposal, err error) {
	if err := want("filePath", c.FilePath); err != nil {
		return p, err
	}
	if err := want("newContent", c.NewContent); err != nil {
		return p, err
	}
	path := c.FilePath.Value
	if !filepath.IsAbs(path) {
		return p, fmt.Errorf("filePath must be an absolute path, and %q is not", cut(path))
	}
	if may := s.server.o.MayOpen; may != nil {
		if err := may(path); err != nil {
			return p, fmt.Errorf("%w; review this change in the terminal", err)
		}
	}
	old, exists, err := readOld(path)
	if err != nil {
		return p, fmt.Errorf("%w; review this change in the terminal", err)
	}
	return review.Proposal{
		Key: path, Path: filepath.Clean(path), Old: old, IsNew: !exists, New: c.NewContent.Value,
		Title: filepath.Base(path) + " – " + s.label,
	}, nil
}

// want says what is wrong with an argument.
func want(name string, t wire.Text) error {
	switch t.State {
	case wire.Good:
		return nil
	case wire.Absent:
		return fmt.Errorf("%s is missing", name)
	case wire.LoneSurrogate:
		return fmt.Errorf("%s holds half a character (a lone surrogate), which no file can hold; send it whole", name)
	default:
		return fmt.Errorf("%s must be a string", name)
	}
}

// explain says for the model, or its user, why no view is open and what to do.
func explain(path string, err error) string {
	advice := "review this change in the terminal"
	switch {
	case errors.Is(err, review.ErrShut), errors.Is(err, context.Canceled), errors.Is(err, review.ErrSettled):
		advice = "propose it again if it is still wanted"
	case errors.Is(err, review.ErrTooMany):
		advice = "then propose this one again"
	}
	return fmt.Sprintf("no diff of %q is open: %v; %s", path, err, advice)
}

// closeDiff takes a diff back and answers with its last text (SPEC F-4). No
// outcome of it follows, whether suppressNotification asks for that or not: it
// would settle a later diff of the same file.
func (s *session) closeDiff(ctx context.Context, m wire.Message, reply func([]byte)) {
	if err := want("filePath", m.Call.FilePath); err != nil {
		reply(wire.Failed(m.ID, err.Error()))
		return
	}
	path := m.Call.FilePath.Value
	outcome, err := s.server.o.Registry.Withdraw(ctx, s, path)
	accepted, ok := s.forget(path)
	if err != nil && ok {
		outcome, err = accepted, nil
	}
	if err != nil {
		reply(wire.Failed(m.ID, fmt.Sprintf("%v: %q; it was decided or closed before", err, path)))
		return
	}
	reply(wire.Closed(m.ID, outcome.Content, outcome.Edited))
}
