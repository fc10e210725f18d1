// Package idetools offers a running companion's editor to any MCP client, as tools with the usual names and schemas
// of other IDE servers: diagnostics, open editors, selection, opening a file, showing a diff. It changes no file
// unless that is allowed.
package idetools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/words"
)

// Options configure Add.
type Options struct {
	// Dirs are the folders of companions' sockets. Folder is the folder whose companion is asked, absolute and
	// canonical.
	Dirs   []string
	Folder string
	// Write lets openDiff write what the user accepted; without it no tool changes a file.
	Write bool
}

// maxReply bounds one reply, in bytes. Diagnostics and selections beyond it are left out and counted.
const maxReply = 36_000

// A tool is one tool: its name, schema and function.
type tool struct {
	name, description string
	schema            string // JSON
	changes           bool   // the user sees an effect
	do                func(*tools, context.Context, *control.Client, json.RawMessage) (any, error)
}

type tools struct{ o Options }

// Add adds the tools to a server.
func Add(s *mcp.Server, o Options) {
	t := &tools{o}
	s.AddReceivingMiddleware(t.joins)
	for _, one := range all(o.Write) {
		no := false
		s.AddTool(&mcp.Tool{
			Name: one.name, Description: one.description, InputSchema: json.RawMessage(one.schema),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !one.changes, DestructiveHint: &no, OpenWorldHint: &no},
		}, t.handler(one))
	}
}

const noArgs = `{"type":"object","properties":{},"additionalProperties":false}`

func all(write bool) []tool {
	diff := "Shows a proposed text of a file beside the file's own in the user's editor, and waits until the user accepts or rejects it; the user may edit the proposal first. The answer is FILE_SAVED and the final text, or DIFF_REJECTED. pollux does not write the file: write the final text yourself."
	if write {
		diff = "Shows a proposed text of a file beside the file's own in the user's editor, and waits until the user accepts or rejects it; the user may edit the proposal first. An accepted text is written. The answer is FILE_SAVED and the final text, or DIFF_REJECTED."
	}
	return []tool{
		{"getDiagnostics", "Gets the errors and warnings that the editor's tools found, of one file or of all.", `{"type":"object","properties":{"uri":{"type":"string","description":"The file's URI or absolute path; absent for all files."}},"additionalProperties":false}`, false, (*tools).diagnostics},
		{"getOpenEditors", "Gets the files that are open in the editor, the one looked at last first.", noArgs, false, (*tools).editors},
		{"getCurrentSelection", "Gets what is selected in the file that the user looks at.", noArgs, false, (*tools).selection},
		{"getLatestSelection", "Gets what was selected last, also when the focus is elsewhere now.", noArgs, false, (*tools).selection},
		{"getWorkspaceFolders", "Gets the folders that are open in the editor.", noArgs, false, (*tools).folders},
		{"checkDocumentDirty", "Says whether a file has unsaved changes in the editor.", `{"type":"object","properties":{"filePath":{"type":"string","description":"The file's absolute path."}},"required":["filePath"],"additionalProperties":false}`, false, (*tools).dirty},
		{"openFile", "Opens a file in the user's editor, at a line or at a text in it.", `{"type":"object","properties":{"filePath":{"type":"string","description":"The file's path, absolute or in the workspace."},"line":{"type":"integer","minimum":1,"description":"The line to show, from 1."},"startText":{"type":"string","description":"A text in the file to show; the first place counts."},"endText":{"type":"string","description":"Accepted and not used."},"preview":{"type":"boolean","description":"Accepted and not used."},"selectToEndOfLine":{"type":"boolean","description":"Accepted and not used."},"makeFrontmost":{"type":"boolean","default":true,"description":"Whether the editor comes to the front."}},"required":["filePath"],"additionalProperties":false}`, true, (*tools).openFile},
		{"openDiff", diff, `{"type":"object","properties":{"old_file_path":{"type":"string","description":"The file that the proposal changes; need not be there."},"new_file_path":{"type":"string","description":"The file that the proposal is for; usually the same."},"new_file_contents":{"type":"string","description":"The whole proposed text."},"tab_name":{"type":"string","description":"A name for the diff, given back when it is rejected."}},"required":["old_file_path","new_file_path","new_file_contents","tab_name"],"additionalProperties":false}`, true, (*tools).openDiff},
	}
}

// joinWithin bounds how long a companion is sought for Join.
const joinWithin = 5 * time.Second

// joins tells the companion at once which agent asks here, before its first question: the goroutine that it starts ends within joinWithin.
func (t *tools) joins(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if ss, ok := req.GetSession().(*mcp.ServerSession); ok && method == "notifications/initialized" {
			go func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), joinWithin)
				defer cancel()
				if c, err := control.Find(ctx, t.o.Dirs, t.o.Folder); err == nil {
					defer c.Close()
					join(ctx, c, ss)
				}
			}()
		}
		return next(ctx, method, req)
	}
}

// join tells a companion which agent asks. Whether that arrives decides nothing.
func join(ctx context.Context, c *control.Client, ss *mcp.ServerSession) {
	if hello := ss.InitializeParams(); hello != nil && hello.ClientInfo != nil {
		_ = c.Join(ctx, hello.ClientInfo.Name, hello.ClientInfo.Version)
	}
}

// handler joins the companion anew for each call, because it may have come, gone or changed since the last one.
func (t *tools) handler(one tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		defer func() {
			if r := recover(); r != nil {
				result, err = failure(fmt.Errorf("pollux made a mistake in %s: %v\n%s", one.name, r, debug.Stack())), nil
			}
		}()
		c, err := control.Find(ctx, t.o.Dirs, t.o.Folder)
		if err != nil {
			return failure(err), nil
		}
		defer c.Close()
		join(ctx, c, req.Session) // it may be another companion than the last one
		v, err := one.do(t, ctx, c, req.Params.Arguments)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return failure(err), nil
		}
		return success(v)
	}
}

func failure(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}
}

// success returns v as JSON text, or several texts as one block each.
func success(v any) (*mcp.CallToolResult, error) {
	if texts, ok := v.([]string); ok {
		r := &mcp.CallToolResult{}
		for _, text := range texts {
			r.Content = append(r.Content, &mcp.TextContent{Text: text})
		}
		return r, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}}, nil
}

// decode reads arguments; an unknown one is an error that names it.
func decode(args json.RawMessage, into any) error {
	if len(args) == 0 {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(args)))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field == "":
		return errors.New("these arguments do not fit: they must be one JSON object")
	case errors.As(err, &wrong):
		want := map[reflect.Kind]string{reflect.String: "a string", reflect.Int: "a whole number", reflect.Bool: "true or false"}[wrong.Type.Kind()]
		return fmt.Errorf("these arguments do not fit: %s must be %s, and is a %s", wrong.Field, want, wrong.Value)
	}
	return fmt.Errorf("these arguments do not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// place is a position, 0-based as everywhere in LSP.
type place struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start   place `json:"start"`
	End     place `json:"end"`
	IsEmpty *bool `json:"isEmpty,omitempty"`
}

func spanOf(start, end state.Position) span { return span{Start: place(start), End: place(end)} }

type fileDiagnostics struct {
	URI         string       `json:"uri"`
	Diagnostics []diagnostic `json:"diagnostics"`
	LeftOut     int          `json:"leftOut,omitempty"` // how many did not fit
}

type diagnostic struct {
	Message  string `json:"message"`
	Severity string `json:"severity"`
	Range    span   `json:"range"`
	Source   string `json:"source,omitempty"`
}

func (t *tools) diagnostics(ctx context.Context, c *control.Client, args json.RawMessage) (any, error) {
	var a struct {
		URI string `json:"uri"`
	}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	snap, err := c.Context(ctx)
	if err != nil {
		return nil, err
	}
	_, known := snap.Diagnostics[paths.OfText(a.URI)]
	switch {
	case a.URI != "" && !known:
		return []string{"Not known: no tool in the editor looks at " + paths.OfText(a.URI) + "."}, nil
	case len(snap.Diagnostics) == 0:
		return []string{"Not known: no tool in the editor looks at its files."}, nil
	}
	out := []fileDiagnostics{}
	room := maxReply
	for _, path := range slices.Sorted(maps.Keys(snap.Diagnostics)) {
		if a.URI != "" && path != paths.OfText(a.URI) {
			continue
		}
		f := fileDiagnostics{URI: paths.URI(path), Diagnostics: []diagnostic{}}
		for _, d := range snap.Diagnostics[path] {
			one := diagnostic{words.Shorten(d.Message, 2000), severity(d.Severity), spanOf(d.Start, d.End), d.Source}
			if room -= len(one.Message) + len(one.Source) + 200; room < 0 {
				f.LeftOut++
				continue
			}
			f.Diagnostics = append(f.Diagnostics, one)
		}
		if room -= len(f.URI) + 60; room > -maxReply/10 || a.URI != "" {
			out = append(out, f)
		}
	}
	return out, nil
}

func severity(n int) string {
	switch n {
	case 1:
		return "Error"
	case 2:
		return "Warning"
	case 3:
		return "Information"
	}
	return "Hint"
}

type tab struct {
	URI      string `json:"uri"`
	FileName string `json:"fileName"`
	Label    string `json:"label"`
	IsActive bool   `json:"isActive"`
	IsDirty  bool   `json:"isDirty"`
}

func (t *tools) editors(ctx context.Context, c *control.Client, args json.RawMessage) (any, error) {
	snap, err := contextOf(ctx, c, args)
	if err != nil {
		return nil, err
	}
	tabs := []tab{}
	for _, f := range snap.Files {
		tabs = append(tabs, tab{paths.URI(f.Path), f.Path, filepath.Base(f.Path), f.Path == snap.Active, f.Dirty})
	}
	return map[string]any{"tabs": tabs}, nil
}

func contextOf(ctx context.Context, c *control.Client, args json.RawMessage) (*state.Snapshot, error) {
	if err := decode(args, &struct{}{}); err != nil {
		return nil, err
	}
	return c.Context(ctx)
}

type selected struct {
	Success   bool   `json:"success"`
	Message   string `json:"message,omitempty"`
	Text      string `json:"text"`
	FilePath  string `json:"filePath,omitempty"`
	FileURL   string `json:"fileUrl,omitempty"`
	Selection *span  `json:"selection,omitempty"`
}

func (t *tools) selection(ctx context.Context, c *control.Client, args json.RawMessage) (any, error) {
	snap, err := contextOf(ctx, c, args)
	if err != nil {
		return nil, err
	}
	if snap.Active == "" {
		return selected{Message: "No file is looked at in the editor."}, nil
	}
	s := selected{Success: true, FilePath: snap.Active, FileURL: paths.URI(snap.Active)}
	empty := len(snap.Selections) == 0
	switch {
	case !empty:
		first := snap.Selections[0]
		sp := spanOf(first.Start, first.End)
		s.Text, s.Selection = words.Clip(first.Text, maxReply), &sp
		if len(s.Text) < len(first.Text) {
			s.Text += "…"
		}
	case snap.Cursor != nil:
		sp := spanOf(*snap.Cursor, *snap.Cursor)
		s.Selection = &sp
	}
	if s.Selection != nil {
		s.Selection.IsEmpty = &empty
	}
	return s, nil
}

func (t *tools) folders(ctx context.Context, c *control.Client, args json.RawMessage) (any, error) {
	if err := decode(args, &struct{}{}); err != nil {
		return nil, err
	}
	folders := []map[string]string{}
	for _, root := range c.Status.Roots {
		folders = append(folders, map[string]string{"name": filepath.Base(root), "uri": paths.URI(root), "path": root})
	}
	out := map[string]any{"success": true, "folders": folders}
	if len(c.Status.Roots) > 0 {
		out["rootPath"] = c.Status.Roots[0]
	}
	return out, nil
}

func (t *tools) dirty(ctx context.Context, c *control.Client, args json.RawMessage) (any, error) {
	var a struct {
		FilePath string `json:"filePath"`
	}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	snap, err := c.Context(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range snap.Files {
		if f.Path == paths.OfText(a.FilePath) {
			return map[string]any{"success": true, "filePath": f.Path, "isDirty": f.Dirty, "isUntitled": false}, nil
		}
	}
	return map[string]any{"success": false, "message": "The file is not open in the editor: " + a.FilePath}, nil
}
