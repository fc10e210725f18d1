package lsp

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// Numbers that editors are told.
const (
	throttleMs   = 50
	maxSelection = 16384 + 512 // UTF-16 units; a little more than any agent takes (SPEC C-5)
)

// An IDE is how an editor wants to be called (SPEC D-3).
type IDE struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

// Pollux is what a plugin of pollux's says of itself.
type Pollux struct {
	Version  int  `json:"version"`
	Context  bool `json:"context"`  // it sends pollux/didChangeContext
	OpenDiff bool `json:"openDiff"` // it shows diffs
	Env      bool `json:"env"`      // it has terminals and takes pollux/didChangeEnv
	Types    bool `json:"types"`    // it takes pollux/typeText
	IDE      IDE  `json:"ide"`
	// IDEPid is the process for the discovery file's name (SPEC D-2); 0 for the editor's.
	IDEPid  int   `json:"idePid"`
	Trusted *bool `json:"trusted"`
	// OpenDiffs are the views that the editor kept open when an earlier pollux process ended, and the rejections that it never answered.
	OpenDiffs list[openDiff] `json:"openDiffs"`
}

type openDiff struct {
	ID      string          `json:"diffId"`
	Path    string          `json:"filePath"`
	Content json.RawMessage `json:"content"`
	Shown   json.RawMessage `json:"shown"`   // the text that it was told last, before the user's edits
	Old     json.RawMessage `json:"oldText"` // the file's text beside it
	// Outcome is "rejected" where the user has rejected it and the view has gone; "" where it is still shown.
	Outcome string `json:"outcome"`
}

// Hello is what an editor said of itself at its initialize.
type Hello struct {
	// IDE is never empty. An editor without a plugin gets the name of its LSP client.
	IDE IDE
	// PID is the process for the discovery file's name (SPEC D-2); 0 when the editor named none.
	PID int
	// Roots are the folders, absolute. There is at least one, and each exists.
	Roots []string
	// Pollux is nil for an LSP client without a plugin of pollux's.
	Pollux *Pollux

	process  int  // the editor's own; 0 when not named
	messages bool // it can show window/showMessageRequest
	wide     bool // the character under the cursor is always selected
}

type initializeParams struct {
	ProcessID  *int `json:"processId"`
	ClientInfo struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"clientInfo"`
	Folders  list[folder] `json:"workspaceFolders"`
	RootURI  string       `json:"rootUri"`
	RootPath string       `json:"rootPath"`
	Options  struct {
		Pollux *Pollux `json:"pollux"`
	} `json:"initializationOptions"`
	Capabilities struct {
		Window struct {
			ShowMessage *json.RawMessage `json:"showMessage"`
		} `json:"window"`
		Experimental struct {
			Pollux *Pollux `json:"pollux"`
		} `json:"experimental"`
	} `json:"capabilities"`
}

type folder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

// initialize starts the companion. Every missing parameter has a default, since no
// client sends them all.
func (s *Server) initialize(ctx context.Context, params json.RawMessage) (any, error) {
	s.mu.Lock()
	again := s.asked
	s.asked = true
	s.mu.Unlock()
	if again {
		return nil, rpc.Errorf(rpc.CodeInvalid, "initialize came twice")
	}
	var p initializeParams
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	h := p.hello()
	if h.Pollux != nil {
		for _, d := range h.Pollux.OpenDiffs {
			if content, err := exact(d.Content); err == nil {
				shown, _ := optional(d.Shown)
				old, _ := optional(d.Old)
				s.announced[d.ID] = &announced{text: content, shown: shown, old: old, rejected: d.Outcome == review.Rejected.String(), known: make(chan struct{})}
			}
		}
	}
	s.hello.Store(&h)
	c, err := s.start(ctx, h)
	if err != nil {
		s.log.Error("the companion cannot start", "err", err)
		return nil, rpc.Errorf(rpc.CodeInternal, "pollux cannot start: %v", err)
	}
	env, err := c.Env()
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInternal, "pollux cannot start: %v", err)
	}
	return rpc.Answer{Result: s.capabilities(&h, env), After: func() {
		close(s.ready)
		s.tasks.Go(s.forgetUnknown)
	}}, nil
}

// start starts the companion, unless the server has ended meanwhile.
func (s *Server) start(ctx context.Context, h Hello) (Companion, error) {
	s.life.Lock()
	defer s.life.Unlock()
	if s.over {
		return nil, context.Canceled
	}
	c, err := s.o.Start(ctx, h)
	if err != nil {
		return nil, err
	}
	if h.Pollux != nil {
		s.core.Store.SetTrust(h.Pollux.Trusted)
	}
	s.mu.Lock()
	s.companion, s.roots = c, h.Roots
	s.mu.Unlock()
	// Look it up before the answer: the end of an editor that ends right after it must be noticed.
	if editor, ok := proc.Lookup(h.process); ok { // otherwise the number belongs to another machine or container
		s.tasks.Go(func() { s.watchEditor(editor) })
	}
	s.tasks.Go(s.tellStatus)
	if h.Pollux != nil && h.Pollux.Version >= 2 && s.core.Watch != nil {
		s.tasks.Go(s.watchFiles)
	}
	return c, nil
}

func (p *initializeParams) hello() Hello {
	h := Hello{Pollux: p.Options.Pollux, messages: p.Capabilities.Window.ShowMessage != nil}
	if x := p.Capabilities.Experimental.Pollux; x != nil {
		h.Pollux = merged(x, h.Pollux)
	}
	h.IDE = IDE{Name: "lsp", DisplayName: "Editor"}
	if name := p.ClientInfo.Name; name != "" {
		h.IDE = IDE{Name: slug(name), DisplayName: name}
		h.wide = h.IDE.Name == "helix" || h.IDE.Name == "kak-lsp" || h.IDE.Name == "kakoune-lsp"
	}
	if h.Pollux != nil && h.Pollux.IDE.Name != "" {
		h.IDE = h.Pollux.IDE
		if h.IDE.DisplayName == "" {
			h.IDE.DisplayName = h.IDE.Name
		}
	}
	if p.ProcessID != nil && *p.ProcessID > 1 {
		h.process = *p.ProcessID
	}
	h.PID = h.process
	if h.Pollux != nil && h.Pollux.IDEPid > 1 {
		h.PID = h.Pollux.IDEPid
	}
	h.Roots = p.roots()
	return h
}

// merged returns the value of whichever of the two places has one.
func merged(a, b *Pollux) *Pollux {
	if b == nil {
		return a
	}
	m := *b
	m.Context, m.OpenDiff, m.Env, m.Types = a.Context || b.Context, a.OpenDiff || b.OpenDiff, a.Env || b.Env, a.Types || b.Types
	if m.IDE.Name == "" {
		m.IDE = a.IDE
	}
	if m.IDEPid == 0 {
		m.IDEPid = a.IDEPid
	}
	if m.Trusted == nil {
		m.Trusted = a.Trusted
	}
	if len(m.OpenDiffs) == 0 {
		m.OpenDiffs = a.OpenDiffs
	}
	return &m
}

// slug makes an ideInfo name from a client's name.
func slug(name string) string {
	var out []rune
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			out = append(out, r+'a'-'A')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			out = append(out, r)
		case len(out) > 0 && out[len(out)-1] != '-':
			out = append(out, '-')
		}
		if len(out) == 40 {
			break
		}
	}
	if len(out) == 0 {
		return "lsp"
	}
	return string(out)
}

// roots returns the folders that exist. When the client names none, it is the folder in
// which the client started pollux.
func (p *initializeParams) roots() []string {
	var roots []string
	for _, f := range p.Folders {
		roots = appendFolder(roots, f.URI)
	}
	if len(roots) == 0 {
		roots = appendFolder(roots, p.RootURI)
	}
	if len(roots) == 0 && filepath.IsAbs(p.RootPath) && isFolder(p.RootPath) {
		roots = append(roots, p.RootPath)
	}
	if len(roots) == 0 {
		if dir, err := os.Getwd(); err == nil {
			roots = append(roots, dir)
		}
	}
	return roots
}

func appendFolder(roots []string, uri string) []string {
	path, ok := paths.OfURI(uri)
	if !ok || slices.Contains(roots, path) || !isFolder(path) {
		return roots
	}
	return append(roots, path)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

type obj = map[string]any

// capabilities is the answer to initialize. It asks as little as possible of an editor
// with a plugin. From a plain one it asks for the methods that tell where its user is.
func (s *Server) capabilities(h *Hello, env map[string]string) any {
	caps := obj{
		"positionEncoding": "utf-16",
		"textDocumentSync": obj{"openClose": true, "change": 0, "save": true},
		"workspace": obj{
			"workspaceFolders": obj{"supported": true, "changeNotifications": true},
		},
		"executeCommandProvider": obj{"commands": slices.Sorted(maps.Keys(commands()))},
		"experimental": obj{"pollux": obj{
			"version": 2, "throttleMs": throttleMs, "maxSelection": maxSelection, "env": env,
		}},
	}
	if h.Pollux == nil || !h.Pollux.Context {
		caps["textDocumentSync"] = obj{"openClose": true, "change": 1, "save": true}
		caps["documentHighlightProvider"] = true
		caps["codeActionProvider"] = true
		caps["selectionRangeProvider"] = true
		caps["signatureHelpProvider"] = obj{} // without triggers; eglot asks whenever the user pauses
	}
	return obj{"capabilities": caps, "serverInfo": obj{"name": "pollux", "version": s.o.Version}}
}

// watchEditor ends the server when the editor's process ends (SPEC L-2). The pipe alone
// does not tell: other processes may have inherited its end.
func (s *Server) watchEditor(editor proc.Info) {
	if proc.Wait(s.ctx, editor) == nil {
		s.end(nil)
	}
}
