// Package claude is Claude Code's own part of the agent port, and opencode's, which has taken it over: a lock file, eleven tools
// (openDiff waits for the user), and selection_changed, on the sessions of package mcp (docs/spec/claude.md).
package claude

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/looks"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/paths"
)

// TokenHeader is the header in which a connection brings its token (SPEC CC-5).
const TokenHeader = "X-Claude-Code-Ide-Authorization" //nolint:gosec // a header's name

// Name is Claude Code's name in the table of agents.
const Name = "claude"

// OpenCode is how opencode introduces itself (SPEC OC-3).
const OpenCode = "opencode"

// A Dialect is how Claude Code speaks; it implements mcp.Dialect.
type Dialect struct {
	// Snapshot returns what the user looks at now.
	Snapshot func() *state.Snapshot
	// Open shows a file in the user's editor; nil when that is impossible.
	Open func(ctx context.Context, path string, at *state.Position, takeFocus bool) error
	// Save has the user's editor write a file's unsaved changes; nil when that is impossible.
	Save func(ctx context.Context, path string) error
	// First is the number of the first line and character: 0; 1 for opencode (SPEC OC-3).
	First int
}

var _ mcp.Dialect = (*Dialect)(nil)

// The tools' names and arguments (SPEC CC-17).
const (
	argOld      = "old_file_path"
	argNew      = "new_file_path"
	argContents = "new_file_contents"
	argTab      = "tab_name"
	argPath     = "filePath"
	argURI      = "uri"
	argStart    = "startText"
)

// Arguments implements mcp.Dialect.
func (d *Dialect) Arguments() []string {
	return []string{argOld, argNew, argContents, argTab, argPath, argURI, argStart}
}

// Outcomes implements mcp.Dialect. There are none: the answer of the waiting openDiff is the outcome.
func (d *Dialect) Outcomes(review.Kind) []string { return nil }

// Outcome implements mcp.Dialect.
func (d *Dialect) Outcome(_, _, _ string) []byte { return nil }

// Tools implements mcp.Dialect (SPEC CC-17).
func (d *Dialect) Tools() string { return d.tools().List() }

// Call implements mcp.Dialect.
func (d *Dialect) Call(ctx context.Context, s *mcp.Session, m jsonrpc.Message, reply func([]byte)) {
	d.tools().Call(ctx, s, m, reply)
}

func (d *Dialect) tools() mcp.Tools {
	diff := []string{argOld, argNew, argContents, argTab}
	return mcp.Tools{
		"openDiff":            {About: "Shows a proposed text of a file, which the user may edit, and waits for the user's decision.", Arguments: diff, Required: diff, Run: d.openDiff},
		"close_tab":           {About: "Takes a diff away.", Arguments: []string{argTab}, Required: []string{argTab}, Run: d.closeTab},
		"closeAllDiffTabs":    {About: "Takes this session's diffs away.", Run: d.closeAll},
		"openFile":            {About: "Shows a file.", Arguments: []string{argPath, argStart}, Required: []string{argPath}, Run: d.openFile},
		"getCurrentSelection": {About: "Gets what is selected.", Run: d.selection},
		"getLatestSelection":  {About: "Gets what is selected.", Run: d.selection},
		"getOpenEditors":      {About: "Gets the open files.", Run: d.editors},
		"getWorkspaceFolders": {About: "Gets the open folders.", Run: d.folders},
		"getDiagnostics":      {About: "Gets the problems that the editor's tools found.", Arguments: []string{argURI}, Run: d.diagnostics},
		"checkDocumentDirty":  {About: "Says whether a file has unsaved changes.", Arguments: []string{argPath}, Required: []string{argPath}, Run: d.dirty},
		"saveDocument":        {About: "Saves a file.", Arguments: []string{argPath}, Required: []string{argPath}, Run: d.save},
	}
}

// openDiff waits for the user (SPEC CC-8). It answers DIFF_REJECTED only when the user refuses. Any other end of the diff is an
// error, after which the agent asks in its terminal. Only an acceptance gets an answer that means acceptance (TAB_CLOSED does).
func (d *Dialect) openDiff(ctx context.Context, s *mcp.Session, m jsonrpc.Message) ([]string, error) {
	path, tab := paths.OfText(m.Call.Text(argNew).Value), m.Call.Text(argTab).Value
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s must be an absolute path, and %q is not", argNew, mcp.Brief(path))
	}
	old, exists, err := mcp.ReadOld(path)
	if err != nil {
		return nil, fmt.Errorf("%w; review this change in the terminal", err)
	}
	came := m.Call.Text(argContents).Value
	outcome, err := s.Ask(ctx, string(m.ID), review.Proposal{
		Key: tab, Path: path, Old: old, IsNew: !exists, New: withEndingsOf(old, came),
		Title: filepath.Base(path) + " – " + s.Label(), Waits: true,
	})
	switch {
	case err != nil:
		return nil, err
	case outcome.Kind == review.Rejected:
		return []string{"DIFF_REJECTED", tab}, nil
	case outcome.Kind != review.Accepted:
		return nil, errors.New("nobody has decided this change in the editor; decide it in the terminal")
	case !outcome.Edited:
		return []string{"FILE_SAVED", came}, nil
	case strings.Contains(came, "\r"):
		return []string{"FILE_SAVED", outcome.Content}, nil
	default:
		return []string{"FILE_SAVED", strings.ReplaceAll(outcome.Content, "\r\n", "\n")}, nil
	}
}

// withEndingsOf returns a proposal with the line endings of its file. Claude Code leaves them out, and restores them when it writes
// (SPEC CC-9); without them, every line would look changed.
func withEndingsOf(old, proposal string) string {
	if strings.Contains(proposal, "\r") || !strings.Contains(old, "\r\n") {
		return proposal
	}
	return text.FromLF(old, proposal)
}

func (d *Dialect) closeTab(ctx context.Context, s *mcp.Session, m jsonrpc.Message) ([]string, error) {
	_, _ = s.Withdraw(ctx, m.Call.Text(argTab).Value) // it comes twice (SPEC CC-10)
	return []string{"TAB_CLOSED"}, nil
}

func (d *Dialect) closeAll(ctx context.Context, s *mcp.Session, _ jsonrpc.Message) ([]string, error) {
	return []string{fmt.Sprintf("CLOSED_%d_DIFF_TABS", s.WithdrawAll(ctx))}, nil
}

func (d *Dialect) openFile(ctx context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
	path := paths.OfText(m.Call.Text(argPath).Value)
	if d.Open == nil || !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q cannot be shown", mcp.Brief(path))
	}
	var at *state.Position
	if start := m.Call.Text(argStart).Value; start != "" {
		if content, _, err := mcp.ReadOld(path); err == nil {
			if before, _, ok := strings.Cut(content, start); ok {
				at = &state.Position{Line: strings.Count(before, "\n")}
			}
		}
	}
	if err := d.Open(ctx, path, at, true); err != nil {
		return nil, err
	}
	return []string{"Opened file: " + path}, nil
}

func (d *Dialect) selection(context.Context, *mcp.Session, jsonrpc.Message) ([]string, error) {
	return mcp.JSON(looks.Selection(d.Snapshot(), d.First))
}

func (d *Dialect) editors(context.Context, *mcp.Session, jsonrpc.Message) ([]string, error) {
	snap := d.Snapshot()
	tabs := []map[string]any{}
	for _, f := range snap.Files {
		tabs = append(tabs, map[string]any{
			"uri": paths.URI(f.Path), "label": filepath.Base(f.Path), "isActive": f.Path == snap.Active, "isDirty": f.Dirty,
		})
	}
	return mcp.JSON(map[string]any{"tabs": tabs})
}

func (d *Dialect) folders(context.Context, *mcp.Session, jsonrpc.Message) ([]string, error) {
	roots := d.Snapshot().Roots
	folders := []map[string]string{}
	for _, root := range roots {
		folders = append(folders, map[string]string{"name": filepath.Base(root), "uri": paths.URI(root), "path": root})
	}
	out := map[string]any{"success": true, "folders": folders}
	if len(roots) > 0 {
		out["rootPath"] = roots[0]
	}
	return mcp.JSON(out)
}

func (d *Dialect) dirty(_ context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
	path := paths.OfText(m.Call.Text(argPath).Value)
	for _, f := range d.Snapshot().Files {
		if f.Path == path {
			return mcp.JSON(map[string]any{"success": true, "filePath": path, "isDirty": f.Dirty, "isUntitled": false})
		}
	}
	return mcp.JSON(map[string]any{"success": false, "message": "Document not open: " + path})
}

// save has the editor write a file that this agent may know to be open. The editor refuses when others have written the file since.
func (d *Dialect) save(ctx context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
	path := paths.OfText(m.Call.Text(argPath).Value)
	answer := func(saved bool, message string) ([]string, error) {
		return mcp.JSON(map[string]any{"success": saved, "saved": saved, "filePath": path, "message": message})
	}
	switch {
	case !slices.ContainsFunc(d.Snapshot().Files, func(f state.File) bool { return f.Path == path }):
		return answer(false, "Document not open: "+path)
	case d.Save == nil:
		return answer(false, "Saving is left to the user: "+path)
	}
	if err := d.Save(ctx, path); err != nil {
		return answer(false, err.Error())
	}
	return answer(true, "Document saved: "+path)
}

func (d *Dialect) diagnostics(_ context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
	found, err := looks.Diagnostics(d.Snapshot(), m.Call.Text(argURI).Value)
	if err != nil {
		return nil, err
	}
	return mcp.JSON(found)
}
