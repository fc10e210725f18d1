// Package copilot is GitHub Copilot CLI's own part of the agent port: a lock file that names a private socket, and four tools on the
// sessions of package mcp (docs/spec/copilot.md). The tool open_diff waits for the user and takes no edits.
package copilot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent/looks"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/paths"
)

// Name is its name in the table of agents.
const Name = "copilot"

// Label is what a person calls it.
const Label = "GitHub Copilot CLI"

// How a request brings the lock's token (SPEC GC-1).
const (
	TokenHeader = "Authorization"
	TokenScheme = "Nonce "
)

// ProcessHeader is the header in which a session says which process it is (SPEC GC-2).
const ProcessHeader = "X-Copilot-Pid"

// readOnly is why its proposals cannot be edited (SPEC GC-3).
const readOnly = "GitHub Copilot CLI takes no edits: accept it as it is, or reject it and say what should be different"

// The tools and their arguments (SPEC GC-3, GC-5).
const (
	toolOpen  = "open_diff"
	toolClose = "close_diff"

	argPath     = "original_file_path"
	argContents = "new_file_contents"
	argTab      = "tab_name"
	argURI      = "uri"
)

// A Dialect is how Copilot CLI speaks: mcp.Dialect.
type Dialect struct {
	// Snapshot is what the user looks at now.
	Snapshot func() *state.Snapshot
}

var _ mcp.Dialect = (*Dialect)(nil)

// Arguments implements mcp.Dialect.
func (d *Dialect) Arguments() []string { return []string{argPath, argContents, argTab, argURI} }

// Outcomes implements mcp.Dialect: an outcome is the answer of the open_diff that waits for it.
func (d *Dialect) Outcomes(review.Kind) []string { return nil }

// Outcome implements mcp.Dialect.
func (d *Dialect) Outcome(_, _, _ string) []byte { return nil }

// Context implements mcp.Dialect (SPEC GC-5).
func (d *Dialect) Context(snap *state.Snapshot) []byte { return looks.SelectionChanged(snap, 0) }

// Mention implements mcp.Mentioner (SPEC GC-5).
func (d *Dialect) Mention(m mcp.Mention) []byte {
	return looks.Reference(m.Path, m.First, m.Last, m.Text)
}

// Tools implements mcp.Dialect.
func (d *Dialect) Tools() string { return d.tools().List() }

// Call implements mcp.Dialect.
func (d *Dialect) Call(ctx context.Context, s *mcp.Session, m jsonrpc.Message, reply func([]byte)) {
	d.tools().Call(ctx, s, m, reply)
}

func (d *Dialect) tools() mcp.Tools {
	diff := []string{argPath, argContents, argTab}
	return mcp.Tools{
		toolOpen:  {About: "Shows a proposed text of a file and waits for the user's decision.", Arguments: diff, Required: diff, Run: d.openDiff},
		toolClose: {About: "Takes a diff away.", Arguments: []string{argTab}, Required: []string{argTab}, Run: d.closeDiff},
		"get_selection": {About: "Gets what is selected in the editor.", Run: func(context.Context, *mcp.Session, jsonrpc.Message) ([]string, error) {
			return mcp.JSON(looks.Selection(d.Snapshot(), 0))
		}},
		"get_diagnostics": {About: "Gets the problems that the editor's tools found in a file, or in all.", Arguments: []string{argURI}, Run: func(_ context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
			found, err := looks.Diagnostics(d.Snapshot(), m.Call.Text(argURI).Value)
			if err != nil {
				return nil, err
			}
			return mcp.JSON(found)
		}},
	}
}

// decided is the answer of open_diff and close_diff.
type decided struct {
	Success bool   `json:"success"`
	Result  string `json:"result,omitempty"`
	Trigger string `json:"trigger,omitempty"`
	Tab     string `json:"tab_name"`
	Message string `json:"message"`
}

// openDiff waits for the user (SPEC GC-3). Only an acceptance is SAVED, and only a refusal by the user is REJECTED; whatever else ends
// the diff is an error, after which the agent asks in its terminal.
func (d *Dialect) openDiff(ctx context.Context, s *mcp.Session, m jsonrpc.Message) ([]string, error) {
	path, tab := paths.OfText(m.Call.Text(argPath).Value), m.Call.Text(argTab).Value
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s must be an absolute path, and %q is not", argPath, mcp.Brief(path))
	}
	old, exists, err := mcp.ReadOld(path)
	if err != nil {
		return nil, fmt.Errorf("%w; review this change in the terminal", err)
	}
	outcome, err := s.Ask(ctx, string(m.ID), review.Proposal{
		Key: tab, Path: path, Old: old, IsNew: !exists, New: m.Call.Text(argContents).Value,
		Title: filepath.Base(path) + " – " + s.Label(), Waits: true, ReadOnly: readOnly,
	})
	switch {
	case err != nil:
		return nil, err
	case outcome.Kind == review.Rejected:
		return mcp.JSON(decided{true, "REJECTED", "rejected_via_button", tab, "The user rejected the change."})
	case outcome.Kind != review.Accepted || outcome.Edited: // an edited one cannot be: the registry lets no edit in
		return nil, errors.New("nobody has decided this change in the editor; decide it in the terminal")
	}
	return mcp.JSON(decided{true, "SAVED", "accepted_via_button", tab, "The user accepted the change."})
}

func (d *Dialect) closeDiff(ctx context.Context, s *mcp.Session, m jsonrpc.Message) ([]string, error) {
	tab := m.Call.Text(argTab).Value
	_, _ = s.Withdraw(ctx, tab) // it may be over already
	return mcp.JSON(decided{Success: true, Tab: tab, Message: "The diff is closed."})
}
