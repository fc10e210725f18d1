package claude

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/paths"
)

// maxSelected is where a selection is cut, in UTF-16 units. The model gets about the first 2,000 characters (SPEC
// CC-6); the terminal shows the number of lines.
const maxSelected = 64 << 10

// place is a position. The reader decides whether the first line is 0 or 1.
type place struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start   place `json:"start"`
	End     place `json:"end"`
	IsEmpty bool  `json:"isEmpty"`
}

// selected is the params of selection_changed (SPEC CC-6).
type selected struct {
	Text      string `json:"text"`
	FilePath  string `json:"filePath"`
	FileURL   string `json:"fileUrl"`
	Selection span   `json:"selection"`
}

// looksAt returns what the user looks at; empty texts mean nothing (SPEC CC-6).
func looksAt(snap *state.Snapshot, first int) selected {
	if snap.Active == "" || !utf8.ValidString(snap.Active) {
		return selected{Selection: span{IsEmpty: true}}
	}
	s := selected{FilePath: snap.Active, FileURL: paths.URI(snap.Active), Selection: span{IsEmpty: true}}
	if snap.Cursor != nil {
		s.Selection.Start = place{snap.Cursor.Line + first, snap.Cursor.Character + first}
		s.Selection.End = s.Selection.Start
	}
	if len(snap.Selections) > 0 {
		one := snap.Selections[0]
		s.Text = text.CutUTF16(one.Text, maxSelected)
		s.Selection = span{place{one.Start.Line + first, one.Start.Character + first}, place{one.End.Line + first, one.End.Character + first}, false}
	}
	return s
}

// Context implements mcp.Dialect.
func (d *Dialect) Context(snap *state.Snapshot) []byte {
	return SelectionChanged(snap, d.First)
}

// SelectionChanged returns the notification of what the user looks at (SPEC CC-6). Lines and characters count from
// first.
func SelectionChanged(snap *state.Snapshot, first int) []byte {
	return notification("selection_changed", looksAt(snap, first))
}

// Mention implements mcp.Mentioner (SPEC CC-7). opencode's mentions have lines only.
func (d *Dialect) Mention(m mcp.Mention) []byte {
	at := map[string]any{"filePath": m.Path}
	switch {
	case m.First > 0:
		at["lineStart"], at["lineEnd"] = m.First-1+d.First, m.Last-1+d.First
	case d.First > 0:
		return nil
	}
	return notification("at_mentioned", at)
}

// Reference returns the notification of a mention for Copilot CLI (SPEC GC-5).
func Reference(m mcp.Mention) []byte {
	at := map[string]any{"filePath": m.Path, "fileUrl": paths.URI(m.Path), "selection": nil, "selectedText": nil}
	if m.First > 0 {
		lines := strings.Split(text.ToLF(m.Text), "\n")
		at["selection"] = map[string]place{"start": {Line: m.First - 1}, "end": {Line: m.Last - 1, Character: text.UTF16Len(lines[len(lines)-1])}}
		at["selectedText"] = text.CutUTF16(m.Text, maxSelected)
	}
	return notification("add_file_reference", at)
}

func notification(method string, params any) []byte {
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		panic(err) // it holds only strings and numbers
	}
	return data
}

// maxTold is where Claude Code cuts a selection for its model, in UTF-16 units.
const maxTold = 2000

// Told returns what Claude Code tells its model with the next prompt, if params are those of the latest
// selection_changed; "" for nothing (SPEC CC-6).
func Told(params []byte) (string, error) {
	var s struct {
		Text      string `json:"text"`
		FilePath  string `json:"filePath"`
		Selection *span  `json:"selection"`
	}
	if err := json.Unmarshal(params, &s); err != nil {
		return "", err
	}
	const maybe = "This may or may not be related to the current task."
	switch {
	case s.Selection == nil || s.FilePath == "":
		return "", nil
	case s.Text == "":
		return "The user opened the file " + s.FilePath + " in the IDE. " + maybe, nil
	}
	first, last := s.Selection.Start.Line+1, s.Selection.End.Line+1
	if s.Selection.End.Character == 0 {
		last--
	}
	content := text.CutUTF16(s.Text, maxTold)
	if content != s.Text {
		content += "\n... (truncated)"
	}
	return fmt.Sprintf("The user selected the lines %d to %d from %s:\n%s\n\n%s", first, last, s.FilePath, content, maybe), nil
}
