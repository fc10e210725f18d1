package lsp

import (
	"encoding/json"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// window is the name of an editor's process in the store. All its windows count as one.
const window = "editor"

type document struct {
	URI string `json:"uri"`
}

// didChangeContext takes focus, cursor, selection and the open documents. Each message
// says everything anew.
func (s *Server) didChangeContext(params json.RawMessage) (any, error) {
	var p struct {
		Document  *document       `json:"textDocument"`
		Position  *state.Position `json:"position"`
		Selection *struct {
			Start state.Position `json:"start"`
			End   state.Position `json:"end"`
			Text  string         `json:"text"`
		} `json:"selection"`
		Open *list[string] `json:"openDocuments"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	r := state.Report{Front: true}
	if p.Document != nil {
		r.Active, _ = paths.OfURI(p.Document.URI)
	}
	if r.Active != "" && p.Position != nil && valid(*p.Position) {
		r.Cursor = p.Position
	}
	if sel := p.Selection; r.Active != "" && sel != nil && sel.Text != "" && valid(sel.Start) && valid(sel.End) {
		r.Selections = []state.Selection{{Start: sel.Start, End: sel.End, Text: sel.Text}}
	}
	if p.Open != nil {
		r.Open = []string{}
		for _, uri := range *p.Open {
			if path, ok := paths.OfURI(uri); ok {
				r.Open = append(r.Open, path)
			}
		}
	}
	s.core.Store.Report(window, r)
	if r.Open != nil {
		s.watch(r.Open)
	}
	return nil, nil
}

func valid(p state.Position) bool { return p.Line >= 0 && p.Character >= 0 }

func (s *Server) didChangeTrust(params json.RawMessage) (any, error) {
	var p struct {
		Trusted *bool `json:"trusted"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	s.core.Store.SetTrust(p.Trusted)
	return nil, nil
}

func (s *Server) didChangeDiagnostics(params json.RawMessage) (any, error) {
	var p struct {
		URI         string          `json:"uri"`
		Diagnostics json.RawMessage `json:"diagnostics"` // null: no tool looks at it
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	path, ok := paths.OfURI(p.URI)
	if !ok {
		return nil, nil
	}
	if len(p.Diagnostics) == 0 || string(p.Diagnostics) == "null" {
		s.core.Store.SetDiagnostics(path, nil)
		return nil, nil
	}
	var found list[struct {
		Range    span   `json:"range"`
		Severity int    `json:"severity"`
		Source   string `json:"source"`
		Message  string `json:"message"`
	}]
	if err := decode(p.Diagnostics, &found); err != nil {
		return nil, err
	}
	all := []state.Diagnostic{}
	for _, d := range found {
		all = append(all, state.Diagnostic{
			Start: d.Range.Start, End: d.Range.End, Severity: d.Severity, Source: d.Source, Message: d.Message,
		})
	}
	s.core.Store.SetDiagnostics(path, all)
	return nil, nil
}

// plain says that the context comes from LSP's own methods.
func (s *Server) plain() bool {
	h := s.hello.Load()
	return h.Pollux == nil || !h.Pollux.Context
}

type span struct {
	Start state.Position `json:"start"`
	End   state.Position `json:"end"`
}

// cursor returns the end of a selection. Some editors always select the character under
// the cursor, of one or two units, and mean none by it: wide.
func (r *span) cursor(wide bool) *state.Position {
	if n := r.End.Character - r.Start.Character; wide && r.Start.Line == r.End.Line && n > 0 && n <= 2 {
		return &r.Start
	}
	return &r.End
}

// textParams are the parameters of every textDocument method.
type textParams struct {
	Document  document             `json:"textDocument"`
	Position  *state.Position      `json:"position"`
	Positions list[state.Position] `json:"positions"`
	Range     *span                `json:"range"`
}

// where returns the path of the document that a method names; "" when that is no file.
func where(params json.RawMessage) (p textParams, path string, err error) {
	if err := decode(params, &p); err != nil {
		return p, "", err
	}
	path, _ = paths.OfURI(p.Document.URI)
	return p, path, nil
}

func (s *Server) didOpen(params json.RawMessage) (any, error) {
	_, path, err := where(params)
	if err != nil || path == "" {
		return nil, err
	}
	s.core.Store.Open(window, path)
	if s.plain() {
		s.look(path, nil)
	}
	return nil, nil
}

func (s *Server) didClose(params json.RawMessage) (any, error) {
	_, path, err := where(params)
	if err != nil || path == "" {
		return nil, err
	}
	s.core.Store.Close(window, path)
	return nil, nil
}

// didTouch takes didChange and didSave. A user who edits a document looks at it, and a
// file that is saved may be new on the disk.
func (s *Server) didTouch(params json.RawMessage) (any, error) {
	_, path, err := where(params)
	if err != nil || path == "" {
		return nil, err
	}
	if s.plain() {
		s.look(path, nil)
	}
	s.core.Store.Touch()
	return nil, nil
}

// position takes a request that clients make only at the user's cursor.
func (s *Server) position(params json.RawMessage) (any, error) {
	p, path, err := where(params)
	if err != nil || path == "" || !s.plain() {
		return nil, err
	}
	at := p.Position
	if at == nil && len(p.Positions) > 0 {
		at = &p.Positions[0]
	}
	if at == nil && p.Range != nil {
		at = p.Range.cursor(s.hello.Load().wide)
	}
	s.look(path, at)
	return nil, nil
}

// positions is position for requests whose empty answer is a list.
func (s *Server) positions(params json.RawMessage) (any, error) {
	_, err := s.position(params)
	return []any{}, err
}

// look reports a plain client's active document. Without a position, the last one stays
// if it was in the same document.
func (s *Server) look(path string, at *state.Position) {
	if at == nil {
		if snap := s.core.Store.Snapshot(); snap.Active == path {
			at = snap.Cursor
		}
	}
	if at != nil && !valid(*at) {
		at = nil
	}
	s.core.Store.Report(window, state.Report{Active: path, Cursor: at, Front: true})
}

// codeAction offers the decisions that can be made about a document.
func (s *Server) codeAction(params json.RawMessage) (any, error) {
	if _, err := s.position(params); err != nil {
		return nil, err
	}
	actions := []obj{}
	_, path, _ := where(params)
	for _, d := range s.core.Registry.Pending() {
		if p := d.Proposal(); p.Path == path && s.plain() {
			arguments := []obj{{"diffId": d.ID()}}
			actions = append(actions,
				obj{"title": "Accept " + p.Title, "command": "pollux.accept", "arguments": arguments},
				obj{"title": "Reject " + p.Title, "command": "pollux.reject", "arguments": arguments})
		}
	}
	return actions, nil
}

func (s *Server) didChangeFolders(params json.RawMessage) (any, error) {
	var p struct {
		Event struct {
			Added   list[folder] `json:"added"`
			Removed list[folder] `json:"removed"`
		} `json:"event"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c, roots := s.companion, slices.Clone(s.roots)
	s.mu.Unlock()
	if c == nil {
		return nil, nil
	}
	for _, f := range p.Event.Removed {
		if path, ok := paths.OfURI(f.URI); ok {
			roots = slices.DeleteFunc(roots, func(r string) bool { return r == path })
		}
	}
	for _, f := range p.Event.Added {
		roots = appendFolder(roots, f.URI)
	}
	if err := c.SetRoots(roots); err != nil {
		s.complain("the folders stay as they were: %v", err)
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
	}
	s.mu.Lock()
	s.roots = roots
	s.mu.Unlock()
	s.tellEnv(c)
	return nil, nil
}

// tellEnv gives the new folders to terminals that are opened from now on.
func (s *Server) tellEnv(c Companion) {
	h := s.hello.Load()
	if h.Pollux == nil || !h.Pollux.Env {
		return
	}
	env, err := c.Env()
	if err != nil {
		s.complain("terminals keep the old folders: %v", err)
		return
	}
	s.peer.Notify("pollux/didChangeEnv", obj{"set": env, "unset": []string{}})
}

func (s *Server) didRename(params json.RawMessage) (any, error) {
	var p struct {
		Files list[struct {
			Old string `json:"oldUri"`
			New string `json:"newUri"`
		}] `json:"files"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	for _, f := range p.Files {
		from, ok := paths.OfURI(f.Old)
		to, ok2 := paths.OfURI(f.New)
		if ok && ok2 {
			s.core.Store.Rename(from, to)
		}
	}
	return nil, nil
}

func (s *Server) didDelete(params json.RawMessage) (any, error) {
	var p struct {
		Files list[document] `json:"files"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	for _, f := range p.Files {
		if path, ok := paths.OfURI(f.URI); ok {
			s.core.Store.Close(window, path)
		}
	}
	return nil, nil
}
