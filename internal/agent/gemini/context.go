package gemini

import (
	"bytes"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
)

const (
	// maxFiles bounds the open files in a context (SPEC C-3).
	maxFiles = 10
	// maxSelected is where a selection is cut, in UTF-16 units. It is a little more than the 16,384 at which the CLI
	// cuts and marks the cut, so that the CLI's mark shows (SPEC C-5).
	maxSelected = 16384 + 64
)

// contextOf returns the notification for a snapshot, in the CLI's terms: 1-based positions, newest file first, at
// most one active (SPEC C-1 … C-7).
func contextOf(snap *state.Snapshot) []byte {
	c := &wire.IdeContext{Trusted: snap.Trusted}
	for _, f := range snap.Files {
		if len(c.Files) == maxFiles {
			break
		}
		if !utf8.ValidString(f.Path) {
			continue // no JSON string can hold it
		}
		file := wire.File{Path: f.Path}
		if !f.Focused.IsZero() {
			file.Timestamp = f.Focused.UnixMilli()
		}
		if f.Path == snap.Active {
			activate(&file, snap)
		}
		c.Files = append(c.Files, file)
	}
	return wire.ContextUpdate(c)
}

// ContextParams returns the JSON parameters of the ide/contextUpdate for a snapshot.
func ContextParams(snap *state.Snapshot) string {
	_, params, _ := bytes.Cut(contextOf(snap), []byte(`"params":`))
	return string(bytes.TrimSuffix(params, []byte("}")))
}

func activate(f *wire.File, snap *state.Snapshot) {
	f.Active = true
	if snap.Cursor != nil {
		f.Cursor = &wire.Cursor{Line: snap.Cursor.Line + 1, Character: snap.Cursor.Character + 1}
	}
	if len(snap.Selections) > 0 {
		f.Selected = text.CutUTF16(snap.Selections[0].Text, maxSelected)
	}
}
