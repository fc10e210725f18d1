package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// The CLI's bounds on a context (SPEC K-2).
const (
	maxFiles     = 10
	maxSelection = 16384 // UTF-16 units
	truncated    = "... [TRUNCATED]"
)

// A Context is what the CLI keeps of an ide/contextUpdate: checked and normalised.
type Context struct {
	Workspace *Workspace `json:"workspaceState,omitempty"`
}

// A Workspace is the state of one editor.
type Workspace struct {
	// Files are newest first, at most 10; nil when the message had none.
	Files []File `json:"openFiles,omitzero"`
	// Trusted is nil when the editor does not say.
	Trusted *bool `json:"isTrusted,omitempty"`
}

// A File is one open file.
type File struct {
	Path string `json:"path"`
	// Timestamp is the last focus in Unix milliseconds.
	Timestamp float64 `json:"timestamp"`
	// Active is nil when the message had no isActive, and nothing implied it.
	Active *bool   `json:"isActive,omitempty"`
	Cursor *Cursor `json:"cursor,omitempty"`
	// Selected is nil when there is no selection, "" when the message had an empty one.
	Selected *string `json:"selectedText,omitempty"`
}

// A Cursor is a position; line and character (UTF-16) are 1-based.
type Cursor struct {
	Line      float64 `json:"line"`
	Character float64 `json:"character"`
}

// IsActive says whether the CLI takes the file for the active one.
func (f *File) IsActive() bool { return f.Active != nil && *f.Active }

// ParseContext checks the params of ide/contextUpdate as the CLI does and
// normalises them (SPEC K-2). After an error the CLI is disconnected.
func ParseContext(params []byte) (*Context, error) {
	v, err := parseJSON(params)
	if err != nil {
		return nil, err
	}
	c, err := decodeContext(v)
	if err == nil {
		c.normalise()
	}
	return c, err
}

func decodeContext(v any) (*Context, error) {
	c := &Context{}
	m, err := object(v, "params")
	if err != nil {
		return nil, err
	}
	state, given := m["workspaceState"]
	if !given {
		return c, nil
	}
	if m, err = object(state, "workspaceState"); err != nil {
		return nil, err
	}
	c.Workspace = &Workspace{}
	if c.Workspace.Trusted, err = optional[bool](m, "isTrusted"); err != nil {
		return nil, err
	}
	list, given := m["openFiles"]
	if !given {
		return c, nil
	}
	files, ok := list.([]any)
	if !ok {
		return nil, errors.New("openFiles is not a list")
	}
	c.Workspace.Files = make([]File, len(files))
	for i, f := range files {
		if err := c.Workspace.Files[i].decode(f); err != nil {
			return nil, fmt.Errorf("openFiles[%d]: %w", i, err)
		}
	}
	return c, nil
}

func (f *File) decode(v any) error {
	m, err := object(v, "it")
	if err != nil {
		return err
	}
	path, err := optional[string](m, "path")
	if err == nil && path == nil {
		err = errors.New("path is missing")
	}
	if err != nil {
		return err
	}
	f.Path = *path
	if f.Timestamp, err = number(m, "timestamp"); err != nil {
		return err
	}
	if f.Active, err = optional[bool](m, "isActive"); err != nil {
		return err
	}
	if f.Selected, err = optional[string](m, "selectedText"); err != nil {
		return err
	}
	cursor, given := m["cursor"]
	if !given {
		return nil
	}
	if m, err = object(cursor, "cursor"); err != nil {
		return err
	}
	f.Cursor = &Cursor{}
	if f.Cursor.Line, err = number(m, "line"); err != nil {
		return err
	}
	f.Cursor.Character, err = number(m, "character")
	return err
}

func object(v any, name string) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", name)
	}
	return m, nil
}

// optional reads a member that may be missing but not null.
func optional[T any](m map[string]any, name string) (*T, error) {
	v, given := m[name]
	if !given {
		return nil, nil
	}
	t, ok := v.(T)
	if !ok {
		return nil, fmt.Errorf("%s is %s, not a %T", name, shortJSON(v), t)
	}
	return &t, nil
}

func number(m map[string]any, name string) (float64, error) {
	n, ok := m[name].(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is %s, not a number", name, shortJSON(m[name]))
	}
	f, err := n.Float64()
	if err != nil {
		return 0, fmt.Errorf("%s is %s, which is no finite number", name, n)
	}
	return f, nil
}

func shortJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil || len(b) > 40 {
		return "something else"
	}
	return string(b)
}

// normalise sorts newest first. Only the newest file may be active; the others lose
// cursor and selection. It cuts and marks a long selection, and keeps ten files.
func (c *Context) normalise() {
	if c.Workspace == nil || len(c.Workspace.Files) == 0 {
		return
	}
	files := c.Workspace.Files
	slices.SortStableFunc(files, func(a, b File) int {
		switch {
		case a.Timestamp > b.Timestamp:
			return -1
		case a.Timestamp < b.Timestamp:
			return 1
		}
		return 0
	})
	active := files[0].IsActive()
	for i := range files {
		if i == 0 && active {
			continue
		}
		files[i].Active, files[i].Cursor, files[i].Selected = new(bool), nil, nil
	}
	if all := files[0].Selected; active && all != nil {
		if cut := text.Substring(*all, maxSelection); cut != *all {
			cut += truncated
			files[0].Selected = &cut
		}
	}
	c.Workspace.Files = files[:min(len(files), maxFiles)]
}

// An Outcome says how a diff ended.
type Outcome struct {
	Accepted bool
	// Content is the text to write, for an accepted diff. nil means the proposal as it was, or
	// that it was not accepted.
	Content *string
}

// parseOutcome checks ide/diffAccepted, ide/diffRejected and ide/diffClosed; the last counts as a rejection.
func parseOutcome(method string, params []byte) (path string, out Outcome, err error) {
	v, err := parseJSON(params)
	if err != nil {
		return "", out, err
	}
	m, err := object(v, "params")
	if err != nil {
		return "", out, err
	}
	p, err := optional[string](m, "filePath")
	if err == nil && p == nil {
		err = errors.New("filePath is missing")
	}
	if err != nil {
		return "", out, err
	}
	content, err := optional[string](m, "content")
	switch {
	case method == wire.NotifyRejected: // its content, if any, is ignored
		return *p, out, nil
	case err != nil:
		return "", out, err
	case method == wire.NotifyClosed:
		return *p, out, nil
	case content == nil:
		return "", out, errors.New("content is missing")
	}
	return *p, Outcome{true, content}, nil
}

// A toolResult is the part of a tools/call result that the CLI looks at.
type toolResult struct {
	isError bool
	text    string // the first text block's, "" for none
}

func parseResult(data []byte) (r toolResult, err error) {
	v, err := parseJSON(data)
	if err != nil {
		return r, err
	}
	m, err := object(v, "result")
	if err != nil {
		return r, err
	}
	isError, err := optional[bool](m, "isError")
	if err != nil {
		return r, err
	}
	r.isError = isError != nil && *isError
	list, given := m["content"]
	if !given {
		return r, nil
	}
	blocks, ok := list.([]any)
	if !ok {
		return r, errors.New("content is not a list")
	}
	found := false
	for i, b := range blocks {
		m, err := object(b, "a block")
		if err != nil {
			return r, fmt.Errorf("content[%d]: %w", i, err)
		}
		if m["type"] != "text" {
			continue
		}
		text, ok := m["text"].(string)
		if !ok {
			return r, fmt.Errorf("content[%d] has no text", i)
		}
		if !found {
			r.text, found = text, true
		}
	}
	return r, nil
}

// editedContent returns the text of closeDiff's answer: the member "content" of a JSON
// object, when it is a string; otherwise nothing (SPEC F-4).
func editedContent(text string) *string {
	v, err := parseJSON([]byte(text))
	m, ok := v.(map[string]any)
	content, isText := m["content"].(string)
	if err != nil || !ok || !isText {
		return nil
	}
	return &content
}

// parseTools reads the names in the answer to tools/list. One malformed tool makes it fail.
func parseTools(data []byte) ([]string, error) {
	v, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	m, err := object(v, "result")
	if err != nil {
		return nil, err
	}
	list, ok := m["tools"].([]any)
	if !ok {
		return nil, errors.New("tools is not a list")
	}
	var names []string
	for i, t := range list {
		m, err := object(t, "a tool")
		if err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
		name, ok := m["name"].(string)
		schema, _ := m["inputSchema"].(map[string]any)
		if !ok || schema["type"] != "object" {
			return nil, fmt.Errorf("tools[%d] has no name, or no inputSchema of type object", i)
		}
		names = append(names, name)
	}
	return names, nil
}

// encode writes JSON as JavaScript does: without escapes for < and >, nor for U+2028 and U+2029.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return plainSeparators(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// plainSeparators undoes the escapes of U+2028 and U+2029, which encoding/json makes and JSON does not need.
func plainSeparators(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u202`)) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			continue
		}
		switch rest := data[i:]; {
		case bytes.HasPrefix(rest, []byte(`\u2028`)):
			out, i = append(out, "\u2028"...), i+5
		case bytes.HasPrefix(rest, []byte(`\u2029`)):
			out, i = append(out, "\u2029"...), i+5
		default: // an escape: its second character is part of it
			out, i = append(out, data[i], data[i+1]), i+1
		}
	}
	return out
}
