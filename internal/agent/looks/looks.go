// Package looks words what the user looks at as Claude Code, opencode and Copilot CLI are told it: selection, mention and problems
// (docs/spec/claude.md).
package looks

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

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

// SelectionChanged returns the notification of what the user looks at (SPEC CC-6). Lines and characters count from
// first.
func SelectionChanged(snap *state.Snapshot, first int) []byte {
	return Notification("selection_changed", looksAt(snap, first))
}

// Reference returns the notification of a mention for Copilot CLI (SPEC GC-5).
func Reference(path string, first, last int, content string) []byte {
	at := map[string]any{"filePath": path, "fileUrl": paths.URI(path), "selection": nil, "selectedText": nil}
	if first > 0 {
		lines := strings.Split(text.ToLF(content), "\n")
		at["selection"] = map[string]place{"start": {Line: first - 1}, "end": {Line: last - 1, Character: text.UTF16Len(lines[len(lines)-1])}}
		at["selectedText"] = text.CutUTF16(content, maxSelected)
	}
	return Notification("add_file_reference", at)
}

// Notification returns the notification of a method.
func Notification(method string, params any) []byte {
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		panic(err) // it holds only strings and numbers
	}
	return data
}

// Selection returns what is selected, as JSON. first is the number of the first line and character.
func Selection(snap *state.Snapshot, first int) any {
	now := looksAt(snap, first)
	if now.FilePath == "" {
		return map[string]any{"success": false, "message": "No active editor found"}
	}
	return map[string]any{"success": true, "text": now.Text, "filePath": now.FilePath, "fileUrl": now.FileURL, "selection": now.Selection}
}

// Diagnostics returns the problems of one file, or of all when uri is empty, as JSON (SPEC CC-13). A file that does not exist yet has none.
// For a file that no tool has looked at it fails.
func Diagnostics(snap *state.Snapshot, uri string) (any, error) {
	only := ""
	if uri != "" {
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
	return out, nil
}

// errNotKnown: an empty list would say that there is no problem, and Claude Code would take later ones for new (SPEC CC-13).
var errNotKnown = errors.New("not known: no tool in the editor has looked")

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
