package claude

import (
	"encoding/json"
	"fmt"

	"github.com/pollux-companion/pollux/internal/agent/looks"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// Context implements mcp.Dialect.
func (d *Dialect) Context(snap *state.Snapshot) []byte {
	return looks.SelectionChanged(snap, d.First)
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
	return looks.Notification("at_mentioned", at)
}

// maxTold is where Claude Code cuts a selection for its model, in UTF-16 units.
const maxTold = 2000

// Told returns what Claude Code tells its model with the next prompt, if params are those of the latest
// selection_changed; "" for nothing (SPEC CC-6).
func Told(params []byte) (string, error) {
	var s struct {
		Text      string `json:"text"`
		FilePath  string `json:"filePath"`
		Selection *struct {
			Start, End struct{ Line, Character int }
		} `json:"selection"`
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
