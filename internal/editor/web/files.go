package web

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// Bounds on what a page may report.
const (
	maxOpen = 500 // documents
	maxDirs = 256 // watched folders that a page lists
	maxFind = 200 // files in one answer
)

func treeList(_ context.Context, p *page, in struct {
	Path        string `json:"path"`
	ShowIgnored bool   `json:"showIgnored"`
}) (any, error) {
	entries, truncated, err := p.s.o.Workspace.List(in.Path, in.ShowIgnored)
	if err != nil {
		return nil, err
	}
	p.s.listed(p, filepath.Clean(in.Path))
	return map[string]any{"entries": entries, "truncated": truncated}, nil
}

// listed watches a folder that the page lists.
func (s *Server) listed(p *page, dir string) {
	s.mu.Lock()
	had := slices.Contains(p.dirs, dir)
	p.dirs = append(slices.DeleteFunc(p.dirs, func(d string) bool { return d == dir }), dir)
	if len(p.dirs) > maxDirs {
		p.dirs = p.dirs[1:]
	}
	s.mu.Unlock()
	if !had {
		s.watchOpen()
	}
}

func treeFind(ctx context.Context, p *page, in struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}) (any, error) {
	if in.Limit <= 0 || in.Limit > maxFind {
		in.Limit = maxFind
	}
	found, err := p.s.o.Workspace.Find(ctx, in.Query, in.Limit)
	if err != nil {
		return nil, err
	}
	return map[string]any{"files": append([]string{}, found.Files...), "truncated": found.Truncated, "old": found.Old}, nil
}

type fileResult struct {
	Path         string `json:"path"` // as the page requested it
	Content      string `json:"content"`
	Version      string `json:"version"`
	EOL          string `json:"eol"`
	BOM          bool   `json:"bom"`
	FinalNewline bool   `json:"finalNewline"`
	ReadOnly     bool   `json:"readOnly"`
}

func fileRead(_ context.Context, p *page, in struct {
	Path string `json:"path"`
}) (any, error) {
	t, err := p.s.o.Workspace.Read(in.Path)
	if err != nil {
		return nil, err
	}
	p.knows(in.Path, t.Version)
	return fileResult{
		Path: in.Path, Content: t.Content, Version: t.Version, EOL: eolName(t.Shape),
		BOM: t.Shape.BOM, FinalNewline: t.Shape.FinalNewline, ReadOnly: t.ReadOnly,
	}, nil
}

func eolName(s text.Shape) string {
	switch {
	case s.Mixed:
		return "mixed"
	case s.EOL == "\r\n":
		return "crlf"
	case s.EOL == "\r":
		return "cr"
	}
	return "lf"
}

// knows records a version that the page has been told.
func (p *page) knows(path, version string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if _, ok := p.known[path]; !ok && len(p.known) >= 2*maxOpen {
		clear(p.known) // the page is told of some files once more than necessary
	}
	p.known[path] = version
}

func fileSave(_ context.Context, p *page, in struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	BaseVersion string `json:"baseVersion"`
	Force       bool   `json:"force"`
}) (any, error) {
	s := p.s
	s.files.Lock()
	defer s.files.Unlock()
	version, err := s.o.Workspace.Save(in.Path, in.Content, in.BaseVersion, in.Force)
	if err != nil {
		return nil, err
	}
	p.knows(in.Path, version)
	return map[string]string{"version": version}, nil
}

func fileCreate(_ context.Context, p *page, in struct {
	Path string `json:"path"`
	Dir  bool   `json:"dir"`
}) (any, error) {
	return empty{}, p.s.o.Workspace.Create(in.Path, in.Dir)
}

func fileRename(_ context.Context, p *page, in struct{ From, To string }) (any, error) {
	if err := p.s.o.Workspace.Rename(in.From, in.To); err != nil {
		return nil, err
	}
	p.s.o.Store.Rename(filepath.Clean(in.From), filepath.Clean(in.To))
	return empty{}, nil
}

func fileDelete(_ context.Context, p *page, in struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
}) (any, error) {
	return empty{}, p.s.o.Workspace.Delete(in.Path, in.Recursive)
}

type activeFile struct {
	Path       string            `json:"path"`
	Cursor     *state.Position   `json:"cursor"`
	Selections []state.Selection `json:"selections"`
}

type contextParams struct {
	Focused bool        `json:"focused"`
	Active  *activeFile `json:"active"`
	Open    []string    `json:"open"`
	Dirty   []string    `json:"dirty"`
}

// contextUpdate passes what a page shows to the store, as one window (SPEC C-1 … C-8).
func contextUpdate(_ context.Context, p *page, in contextParams) (any, error) {
	report, err := in.report()
	if err != nil {
		return nil, err
	}
	s := p.s
	s.mu.Lock()
	before := p.open
	moved := !slices.Equal(before, in.Open)
	p.open, p.dirty = report.Open, report.Dirty
	if in.Focused || s.front == nil {
		s.front = p
	}
	window := p.window
	s.mu.Unlock()
	s.o.Store.Report(window, report)
	s.settleHello(p)
	if moved {
		s.watchOpen()
		s.tellNew(p, before)
	}
	return empty{}, nil
}

// report checks everything, because agents receive what reaches the store.
func (in *contextParams) report() (state.Report, error) {
	if len(in.Open) > maxOpen || len(in.Dirty) > maxOpen {
		return state.Report{}, invalid("too many documents")
	}
	for _, path := range slices.Concat(in.Open, in.Dirty) {
		if !filepath.IsAbs(path) || len(path) > workspace.MaxPath {
			return state.Report{}, invalid("a path is not absolute")
		}
	}
	r := state.Report{
		Open: append([]string{}, in.Open...), Dirty: append([]string{}, in.Dirty...), Front: in.Focused,
	}
	a := in.Active
	if a == nil {
		return r, nil
	}
	if !filepath.IsAbs(a.Path) || len(a.Path) > workspace.MaxPath {
		return state.Report{}, invalid("the active document is not described correctly")
	}
	if a.Cursor != nil && !valid(*a.Cursor) {
		return state.Report{}, invalid("the cursor is at no position")
	}
	r.Active, r.Cursor = a.Path, a.Cursor
	for _, sel := range a.Selections {
		if !valid(sel.Start) || !valid(sel.End) {
			return state.Report{}, invalid("a selection has no position")
		}
	}
	r.Selections = a.Selections
	return r, nil
}

func valid(p state.Position) bool { return p.Line >= 0 && p.Character >= 0 }

// watchOpen watches every file that a page has open.
func (s *Server) watchOpen() {
	s.rewatch.Lock()
	defer s.rewatch.Unlock()
	var files, dirs []string
	s.mu.Lock()
	for p := range s.pages {
		files = append(files, p.open...)
		dirs = append(dirs, p.dirs...)
	}
	s.mu.Unlock()
	inside := func(path string) bool { return s.o.Workspace.Contains(path) }
	files = slices.DeleteFunc(files, func(f string) bool { return !inside(f) })
	s.watch.Set(files, dirs)
}

// tellNew tells a page which newly opened documents differ from the disk: one may have changed between reading and
// watching it, or before a reconnection.
func (s *Server) tellNew(p *page, before []string) {
	s.files.Lock()
	defer s.files.Unlock()
	s.mu.Lock()
	var ask []string
	for _, path := range p.open {
		if _, ok := p.known[path]; !ok || !slices.Contains(before, path) {
			ask = append(ask, path)
		}
	}
	s.mu.Unlock()
	s.tellVersions(ask, []*page{p})
}

// changed handles a change from the watcher.
func (s *Server) changed(c workspace.Change) {
	pages := s.everyPage()
	for _, p := range pages {
		s.mu.Lock()
		mine := slices.DeleteFunc(slices.Clone(c.Dirs), func(d string) bool { return !slices.Contains(p.dirs, d) })
		s.mu.Unlock()
		if len(mine) > 0 {
			p.Notify("tree/changed", map[string]any{"dirs": mine})
		}
	}
	s.files.Lock()
	s.tellVersions(c.Files, pages)
	s.files.Unlock()
	s.o.Store.Touch()
}

// tellVersions tells each page which of the paths it has open in another version. The caller holds s.files.
func (s *Server) tellVersions(paths []string, pages []*page) {
	for _, path := range paths {
		version := s.o.Workspace.Version(path)
		for _, p := range pages {
			s.mu.Lock()
			known, ok := p.known[path]
			tell := slices.Contains(p.open, path) && (!ok || known != version)
			s.mu.Unlock()
			if tell {
				p.knows(path, version)
				p.Notify("file/changed", map[string]any{"path": path, "version": orNull(version)})
			}
		}
	}
}

type entryInfo struct {
	ID       string `json:"id"`
	Path     string `json:"path"`
	Title    string `json:"title"`
	Owner    string `json:"owner"`
	At       int64  `json:"at"` // Unix milliseconds
	Outcome  string `json:"outcome"`
	Edited   bool   `json:"edited"`
	Undoable bool   `json:"undoable"`
	Undone   bool   `json:"undone"`
}

type entryTexts struct {
	entryInfo
	Old   string `json:"old"`
	New   string `json:"new"`
	Final string `json:"final"`
}

func entryOf(i history.Info) entryInfo {
	return entryInfo{i.ID, i.Path, i.Title, i.Owner, i.Settled.UnixMilli(), outcomeName(i.Outcome), i.Edited, i.Outcome != review.Rejected, i.Undone}
}

func historyList(_ context.Context, p *page, _ empty) (any, error) {
	list := []entryInfo{}
	if p.s.o.History != nil {
		entries, err := p.s.o.History.List()
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			list = append(list, entryOf(e))
		}
	}
	return map[string]any{"entries": list}, nil
}

type idParams struct {
	ID string `json:"id"`
}

func (s *Server) kept(id string) (history.Entry, error) {
	if s.o.History == nil {
		return history.Entry{}, fmt.Errorf("no history is kept: %w", fs.ErrNotExist)
	}
	return s.o.History.Get(id)
}

func historyRead(_ context.Context, p *page, in idParams) (any, error) {
	e, err := p.s.kept(in.ID)
	if err != nil {
		return nil, err
	}
	return entryTexts{entryOf(e.Info), text.ToLF(e.Old), text.ToLF(e.New), text.ToLF(e.Final)}, nil
}

// historyUndo restores the old text if the file still holds the final one. It ignores line ends, because the agent
// writes them as the file had them.
func historyUndo(_ context.Context, p *page, in idParams) (any, error) {
	if _, err := p.s.kept(in.ID); err != nil {
		return nil, err
	}
	p.s.files.Lock()
	defer p.s.files.Unlock()
	return empty{}, p.s.o.History.Undo(in.ID)
}
