package gemini

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/jsontext"
)

// A Dialect is the mcp.Dialect of Gemini CLI and Qwen Code.
type Dialect struct {
	// LegacyDiffClosed sends ide/diffClosed after each ide/diffRejected, for CLIs that know only the former (SPEC
	// §0).
	LegacyDiffClosed bool
}

var _ mcp.Dialect = Dialect{}

// Tools implements mcp.Dialect (SPEC F-1).
func (Dialect) Tools() string { return wire.Tools }

// Arguments implements mcp.Dialect.
func (Dialect) Arguments() []string { return []string{wire.ArgumentPath, wire.ArgumentContent} }

// Context implements mcp.Dialect.
func (Dialect) Context(snap *state.Snapshot) []byte { return contextOf(snap) }

// closed is the journal's name for ide/diffClosed.
const closed = "closed"

// Outcomes implements mcp.Dialect (SPEC F-3).
func (d Dialect) Outcomes(how review.Kind) []string {
	switch {
	case how == review.Accepted:
		return []string{mcp.Accepted}
	case d.LegacyDiffClosed:
		return []string{mcp.Rejected, closed}
	default:
		return []string{mcp.Rejected}
	}
}

// Outcome implements mcp.Dialect.
func (Dialect) Outcome(as, path, content string) []byte {
	switch as {
	case mcp.Accepted:
		return wire.Accepted(path, content)
	case closed:
		return wire.ClosedNotice(path, content)
	default:
		return wire.Rejected(path)
	}
}

// Call implements mcp.Dialect (SPEC F-1).
func (Dialect) Call(ctx context.Context, s *mcp.Session, m jsonrpc.Message, reply func([]byte)) {
	switch name := m.Call.Name; {
	case name.State != jsontext.Good:
		reply(jsonrpc.Error(m.ID, jsonrpc.CodeInvalidParams, "params.name must be the name of a tool"))
	case name.Value == wire.ToolOpenDiff:
		openDiff(ctx, s, m, reply)
	case name.Value == wire.ToolCloseDiff:
		closeDiff(ctx, s, m, reply)
	default:
		reply(jsonrpc.Error(m.ID, jsonrpc.CodeInvalidParams, "unknown tool; there are openDiff and closeDiff"))
	}
}

// openDiff shows a proposal and answers when its view is open (SPEC F-2). The response is sent before any outcome.
func openDiff(ctx context.Context, s *mcp.Session, m jsonrpc.Message, reply func([]byte)) {
	p, err := proposal(s, &m.Call)
	if err != nil {
		reply(jsonrpc.Failed(m.ID, err.Error()))
		return
	}
	if err := s.Open(ctx, string(m.ID), p, func() { reply(wire.Opened(m.ID)) }); err != nil {
		reply(jsonrpc.Failed(m.ID, err.Error()))
	}
}

// proposal checks the arguments and reads the file's old text.
func proposal(s *mcp.Session, c *jsonrpc.Call) (p review.Proposal, err error) {
	name, content := c.Text(wire.ArgumentPath), c.Text(wire.ArgumentContent)
	if err := want(wire.ArgumentPath, name); err != nil {
		return p, err
	}
	if err := want(wire.ArgumentContent, content); err != nil {
		return p, err
	}
	path := name.Value
	if !filepath.IsAbs(path) {
		return p, fmt.Errorf("filePath must be an absolute path, and %q is not", mcp.Brief(path))
	}
	old, exists, err := mcp.ReadOld(path)
	if err != nil {
		return p, fmt.Errorf("%w; review this change in the terminal", err)
	}
	return review.Proposal{
		Key: path, Path: filepath.Clean(path), Old: old, IsNew: !exists, New: content.Value, NewJSON: content.JSON,
		Title: filepath.Base(path) + " – " + s.Label(),
	}, nil
}

// want returns what is wrong with an argument.
func want(name string, t jsontext.Text) error {
	switch t.State {
	case jsontext.Good:
		return nil
	case jsontext.Absent:
		return fmt.Errorf("%s is missing", name)
	case jsontext.LoneSurrogate:
		return fmt.Errorf("%s holds half a character (a lone surrogate), which no file can hold; send it whole", name)
	default:
		return fmt.Errorf("%s must be a string", name)
	}
}

// closeDiff withdraws a diff and answers with its last text (SPEC F-4). It sends no outcome, whatever
// suppressNotification says, because an outcome would settle a later diff of the same file.
func closeDiff(ctx context.Context, s *mcp.Session, m jsonrpc.Message, reply func([]byte)) {
	path := m.Call.Text(wire.ArgumentPath)
	if err := want(wire.ArgumentPath, path); err != nil {
		reply(jsonrpc.Failed(m.ID, err.Error()))
		return
	}
	outcome, err := s.Withdraw(ctx, path.Value)
	if err != nil {
		reply(jsonrpc.Failed(m.ID, fmt.Sprintf("%v: %q; it was decided or closed before", err, path.Value)))
		return
	}
	reply(wire.Closed(m.ID, outcome.Content, outcome.Edited))
}
