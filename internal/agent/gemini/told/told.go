// Package told says what Gemini CLI makes of a companion's context, and in
// which words it tells its model: whole at first, then as changes (SPEC K-2).
// It is pure.
package told

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/text"
)

const (
	// maxFiles is how many open files the CLI keeps.
	maxFiles = 10
	// maxSelected is where it cuts a selection, in UTF-16 units.
	maxSelected = 16384
	// cutWord is what it writes behind a selection that it has cut.
	cutWord = "... [TRUNCATED]"
)

// A Cursor is a position, line and UTF-16 character both 1-based.
type Cursor struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// A File is one open file of a Context.
type File struct {
	Path      string  `json:"path"`
	Timestamp int64   `json:"timestamp"` // Unix milliseconds
	Active    bool    `json:"isActive,omitempty"`
	Cursor    *Cursor `json:"cursor,omitempty"`
	Selected  string  `json:"selectedText,omitempty"`
}

// A Context is what the CLI knows of the editor.
type Context struct {
	Files   []File
	Trusted *bool // nil: the editor says nothing of it
}

// Parse reads the parameters of ide/contextUpdate and normalises them as the CLI does: newest file first, only the
// newest may be active, the others lose cursor and selection, a long selection is cut and marked, ten files at most.
func Parse(params []byte) (Context, error) {
	var in struct {
		State struct {
			Files   []File `json:"openFiles"`
			Trusted *bool  `json:"isTrusted"`
		} `json:"workspaceState"`
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return Context{}, fmt.Errorf("the context is not what a CLI would take: %w", err)
	}
	files := in.State.Files
	slices.SortStableFunc(files, func(a, b File) int { return compare(b.Timestamp, a.Timestamp) })
	for i := range files {
		f := &files[i]
		if i > 0 || !f.Active {
			f.Active, f.Cursor, f.Selected = false, nil, ""
		}
		if text.UTF16Len(f.Selected) > maxSelected {
			f.Selected = text.Substring(f.Selected, maxSelected) + cutWord
		}
	}
	return Context{files[:min(len(files), maxFiles)], in.State.Trusted}, nil
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (c Context) active() *File {
	if len(c.Files) > 0 && c.Files[0].Active {
		return &c.Files[0]
	}
	return nil
}

// A place is the active file as the model is told of it.
type place struct {
	Path     string  `json:"path"`
	Cursor   *Cursor `json:"cursor,omitempty"`
	Selected string  `json:"selectedText,omitempty"`
}

func placeOf(f *File) *place { return &place{f.Path, f.Cursor, f.Selected} }

// Full returns the whole context as the model is told it: an object with activeFile and otherOpenFiles. ok is false
// when there is nothing to tell.
func (c Context) Full() (object any, ok bool) {
	var full struct {
		Active *place   `json:"activeFile,omitempty"`
		Others []string `json:"otherOpenFiles,omitempty"`
	}
	if f := c.active(); f != nil {
		full.Active = placeOf(f)
	}
	for _, f := range c.Files {
		if !f.Active {
			full.Others = append(full.Others, f.Path)
		}
	}
	return full, full.Active != nil || len(full.Others) > 0
}

// changes is a difference as the model is told it. The order of the fields is the CLI's.
type changes struct {
	Opened []string `json:"filesOpened,omitempty"`
	Closed []string `json:"filesClosed,omitempty"`
	Active any      `json:"activeFileChanged,omitempty"`
	Cursor *struct {
		Path   string `json:"path"`
		Cursor Cursor `json:"cursor"`
	} `json:"cursorMoved,omitempty"`
	Selection *struct {
		Path     string `json:"path"`
		Selected string `json:"selectedText"`
	} `json:"selectionChanged,omitempty"`
}

// Since returns the changes since before as the model is told them: an object with changes. ok is false
// when there is nothing to tell.
func (c Context) Since(before Context) (object any, ok bool) {
	ch := changes{Opened: missing(c.Files, before.Files), Closed: missing(before.Files, c.Files)}
	now, then := c.active(), before.active()
	switch {
	case now == nil && then != nil:
		ch.Active = struct {
			Path     *string `json:"path"`
			Previous string  `json:"previousPath"`
		}{nil, then.Path}
	case now == nil:
	case then == nil || then.Path != now.Path:
		ch.Active = placeOf(now)
	default:
		ch.moved(now, then)
	}
	told := len(ch.Opened) > 0 || len(ch.Closed) > 0 || ch.Active != nil || ch.Cursor != nil || ch.Selection != nil
	return struct {
		Changes changes `json:"changes"`
	}{ch}, told
}

// moved notes what has changed within the active file.
func (ch *changes) moved(now, then *File) {
	if now.Cursor != nil && (then.Cursor == nil || *then.Cursor != *now.Cursor) {
		ch.Cursor = &struct {
			Path   string `json:"path"`
			Cursor Cursor `json:"cursor"`
		}{now.Path, *now.Cursor}
	}
	if now.Selected != then.Selected {
		ch.Selection = &struct {
			Path     string `json:"path"`
			Selected string `json:"selectedText"`
		}{now.Path, now.Selected}
	}
}

// missing lists the paths of files that are not among others.
func missing(files, others []File) []string {
	var paths []string
	for _, f := range files {
		if !slices.ContainsFunc(others, func(o File) bool { return o.Path == f.Path }) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// The CLI's introductory sentences.
const (
	wholeIs   = "Here is the user's editor context as a JSON object. This is for your information only."
	changesIs = "Here is a summary of changes in the user's editor context, in JSON format. This is for your information only."
)

// FullWords returns the text part of the prompt that tells the whole context.
func (c Context) FullWords() (string, bool) {
	object, ok := c.Full()
	return words(wholeIs, object), ok
}

// SinceWords returns the text part of a later prompt.
func (c Context) SinceWords(before Context) (string, bool) {
	object, ok := c.Since(before)
	return words(changesIs, object), ok
}

func words(sentence string, object any) string {
	return sentence + "\n```json\n" + string(JSON(object, "  ")) + "\n```"
}

// JSON encodes an object as the CLI does: it escapes no character that JSON allows.
func JSON(object any, indent string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	_ = enc.Encode(object) // structs of strings and numbers
	// encoding/json always escapes U+2028 and U+2029; JavaScript does not.
	return unescapeLines(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// unescapeLines writes the escaped line and paragraph separators as they are.
func unescapeLines(b []byte) []byte {
	var out []byte
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 >= len(b) {
			break
		}
		switch rest := b[i:]; {
		case bytes.HasPrefix(rest, []byte(`\u2028`)):
			out, b = append(append(out, b[:i]...), "\u2028"...), b[i+6:]
		case bytes.HasPrefix(rest, []byte(`\u2029`)):
			out, b = append(append(out, b[:i]...), "\u2029"...), b[i+6:]
		default:
			out, b = append(out, b[:i+2]...), b[i+2:]
		}
	}
	return append(out, b...)
}
