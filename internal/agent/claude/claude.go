// Package claude is Claude Code's own part of the agent port, and opencode's, which has taken it over: a lock file, eleven tools
// (openDiff waits for the user), and selection_changed, on the sessions of package mcp (docs/spec/claude.md).
package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/paths"
)

// TokenHeader is where a connection brings its token (SPEC CC-5).
const TokenHeader = "X-Claude-Code-Ide-Authorization" //nolint:gosec // a header's name

// OpenCode is how opencode introduces itself (SPEC OC-3).
const OpenCode = "opencode"

// A Dialect is how Claude Code speaks: mcp.Dialect.
type Dialect struct {
	// Snapshot is what the user looks at now.
	Snapshot func() *state.Snapshot
	// Open shows a file in the user's editor; nil where there is no way.
	Open func(ctx context.Context, path string, at *state.Position, takeFocus bool) error
	// First is the number of the first line and character: 0, and 1 for opencode (SPEC OC-3).
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

// Outcomes implements mcp.Dialect: an outcome is the answer of the openDiff that waits for it.
func (d *Dialect) Outcomes(review.Kind) []string { return nil }

// Outcome implements mcp.Dialect.
func (d *Dialect) Outcome(_, _, _ string) []byte { return nil }

// Tools implements mcp.Dialect (SPEC CC-17).
func (d *Dialect) Tools() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tools())) {
		t := tools()[name]
		properties := map[string]any{}
		for _, a := range t.arguments {
			properties[a] = map[string]string{"type": "string"}
		}
		data, err := json.Marshal(map[string]any{
			"name": name, "description": t.about,
			"inputSchema": map[string]any{"type": "object", "properties": properties, "required": append([]string{}, t.required...)},
		})
		if err != nil {
			panic(err) // of strings
		}
		all = append(all, string(data))
	}
	return `{"tools":[` + strings.Join(all, ",") + `]}`
}

// A tool answers with the texts of its blocks, or says for the model why it cannot.
type tool struct {
	about               string
	arguments, required []string
	run                 func(*Dialect, context.Context, *mcp.Session, jsonrpc.Message) ([]string, error)
}

func tools() map[string]tool {
	diff := []string{argOld, argNew, argContents, argTab}
	return map[string]tool{
		"openDiff":            {"Shows a proposed text of a file, which the user may edit, and waits for the user's decision.", diff, diff, (*Dialect).openDiff},
		"close_tab":           {"Takes a diff away.", []string{argTab}, []string{argTab}, (*Dialect).closeTab},
		"closeAllDiffTabs":    {"Takes this session's diffs away.", nil, nil, (*Dialect).closeAll},
		"openFile":            {"Shows a file.", []string{argPath, argStart}, []string{argPath}, (*Dialect).openFile},
		"getCurrentSelection": {"Gets what is selected.", nil, nil, (*Dialect).selection},
		"getLatestSelection":  {"Gets what is selected.", nil, nil, (*Dialect).selection},
		"getOpenEditors":      {"Gets the open files.", nil, nil, (*Dialect).editors},
		"getWorkspaceFolders": {"Gets the open folders.", nil, nil, (*Dialect).folders},
		"getDiagnostics":      {"Gets the problems that the editor's tools found.", []string{argURI}, nil, (*Dialect).diagnostics},
		"checkDocumentDirty":  {"Says whether a file has unsaved changes.", []string{argPath}, []string{argPath}, (*Dialect).dirty},
		"saveDocument":        {"Saves a file.", []string{argPath}, []string{argPath}, (*Dialect).save},
	}
}

// Call implements mcp.Dialect.
func (d *Dialect) Call(ctx context.Context, s *mcp.Session, m jsonrpc.Message, reply func([]byte)) {
	t, ok := tools()[m.Call.Name.Value]
	if m.Call.Name.State != jsonrpc.Good || !ok {
		reply(jsonrpc.Error(m.ID, jsonrpc.CodeInvalidParams, "unknown tool"))
		return
	}
	for _, name := range t.arguments {
		a := m.Call.Text(name)
		if a.State == jsonrpc.Good || a.State == jsonrpc.Absent && !slices.Contains(t.required, name) {
			continue
		}
		reply(jsonrpc.Failed(m.ID, fmt.Sprintf("%s must be a string that is text", name)))
		return
	}
	texts, err := t.run(d, ctx, s, m)
	if err != nil {
		reply(jsonrpc.Failed(m.ID, err.Error()))
		return
	}
	reply(jsonrpc.Texts(m.ID, texts...))
}

// openDiff waits for the user (SPEC CC-8). Only a refusal by the user is DIFF_REJECTED; whatever else ends the diff is an error, after
// which the agent asks in its terminal. Nothing but an acceptance is answered by a word that means one (TAB_CLOSED does).
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

// withEndingsOf is a proposal with the line ends of its file, which Claude Code leaves out of it and restores when it writes (SPEC CC-9):
// without them every line would be shown as changed.
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
	now := looksAt(d.Snapshot(), d.First)
	if now.FilePath == "" {
		return object(map[string]any{"success": false, "message": "No active editor found"})
	}
	return object(map[string]any{"success": true, "text": now.Text, "filePath": now.FilePath, "fileUrl": now.FileURL, "selection": now.Selection})
}

func (d *Dialect) editors(context.Context, *mcp.Session, jsonrpc.Message) ([]string, error) {
	snap := d.Snapshot()
	tabs := []map[string]any{}
	for _, f := range snap.Files {
		tabs = append(tabs, map[string]any{
			"uri": paths.URI(f.Path), "label": filepath.Base(f.Path), "isActive": f.Path == snap.Active, "isDirty": f.Dirty,
		})
	}
	return object(map[string]any{"tabs": tabs})
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
	return object(out)
}

func (d *Dialect) dirty(_ context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
	path := paths.OfText(m.Call.Text(argPath).Value)
	for _, f := range d.Snapshot().Files {
		if f.Path == path {
			return object(map[string]any{"success": true, "filePath": path, "isDirty": f.Dirty, "isUntitled": false})
		}
	}
	return object(map[string]any{"success": false, "message": "Document not open: " + path})
}

// save never writes: what a buffer holds is the user's to save.
func (d *Dialect) save(_ context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
	return object(map[string]any{"success": false, "message": "Saving is left to the user: " + paths.OfText(m.Call.Text(argPath).Value)})
}

// errNotKnown: an empty list would say that there is no problem, and Claude Code takes what it hears later for new (SPEC CC-13).
var errNotKnown = errors.New("not known: no tool in the editor has looked")

// diagnostics are those of one file, or of all (SPEC CC-13). A file that does not exist yet has none.
func (d *Dialect) diagnostics(_ context.Context, _ *mcp.Session, m jsonrpc.Message) ([]string, error) {
	snap := d.Snapshot()
	only := ""
	if uri := m.Call.Text(argURI).Value; uri != "" {
		only = paths.OfText(uri)
	}
	if _, known := snap.Diagnostics[only]; !known && (only != "" || len(snap.Diagnostics) == 0) {
		if _, err := os.Lstat(only); only == "" || !errors.Is(err, fs.ErrNotExist) {
			return nil, errNotKnown
		}
	}
	type finding struct {
		Message  string `json:"message"`
		Severity string `json:"severity"`
		Range    struct {
			Start place `json:"start"`
			End   place `json:"end"`
		} `json:"range"`
		Source string `json:"source,omitempty"`
	}
	type file struct {
		URI         string    `json:"uri"`
		Diagnostics []finding `json:"diagnostics"`
	}
	out := []file{}
	for _, path := range slices.Sorted(maps.Keys(snap.Diagnostics)) {
		if only != "" && path != only {
			continue
		}
		f := file{URI: paths.URI(path), Diagnostics: []finding{}}
		for _, one := range snap.Diagnostics[path] {
			x := finding{Message: text.CutUTF16(one.Message, 2000), Severity: severity(one.Severity), Source: one.Source}
			x.Range.Start, x.Range.End = place(one.Start), place(one.End)
			f.Diagnostics = append(f.Diagnostics, x)
		}
		out = append(out, f)
	}
	if only != "" && len(out) == 0 {
		out = append(out, file{URI: paths.URI(only), Diagnostics: []finding{}})
	}
	return object(out)
}

func severity(n int) string {
	switch n {
	case 1:
		return "Error"
	case 2:
		return "Warning"
	case 3:
		return "Info"
	}
	return "Hint"
}

// object is one block with JSON in it (SPEC CC-17).
func object(v any) ([]string, error) {
	data, err := json.Marshal(v)
	return []string{string(data)}, err
}
