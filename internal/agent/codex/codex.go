// Package codex answers Codex, which asks on one fixed socket of the user what they look at, and shows no diffs in editors
// (docs/spec/codex.md).
package codex

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

const (
	// maxConns is the number of connections at one time; Codex has one for each question. The next is closed at once.
	maxConns = 16
	// silence is how long a connection may say nothing, and take nothing.
	silence = 10 * time.Second
	// maxSelected is where a selection is cut, in UTF-16 units.
	maxSelected = 64 << 10
	// us is what answers are signed with.
	us = "pollux"
	// methodContext asks what the user looks at.
	methodContext = "ide-context"
)

// ErrTaken: somebody answers on the socket already, another companion or another program.
var ErrTaken = errors.New("somebody else answers Codex")

// errSystem: Codex has no socket on this system.
var errSystem = errors.New("codex has no socket here that is known")

// Used says whether Codex has been used on this machine.
func Used(getenv func(string) string, home string) bool {
	dir := getenv("CODEX_HOME")
	if dir == "" {
		dir = filepath.Join(home, ".codex")
	}
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// Path is the socket that every Codex of this user asks on, below the temporary folder (SPEC CX-1).
func Path(temp string) string {
	return filepath.Join(temp, "codex-ipc", "ipc-"+strconv.Itoa(os.Getuid())+".sock")
}

// A Server answers until Close. Goroutines: one that accepts, and one for each connection; Close ends and awaits all.
type Server struct {
	snapshot func() *state.Snapshot
	heard    func(proc.Info)
	ln       net.Listener
	path     string
	file     fs.FileInfo // of the socket
	done     sync.WaitGroup

	mu     sync.Mutex // guards the below
	conns  map[net.Conn]struct{}
	asked  []proc.Info    // the living processes that have asked of a folder that is served, the latest last
	of     map[int]string // the folder that each of them has asked for last
	closed bool
}

// maxAsked bounds the processes that are remembered.
const maxAsked = 64

// Asked lists the Codexes that have asked what the user looks at and still live.
func (s *Server) Asked() []proc.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = slices.DeleteFunc(s.asked, func(p proc.Info) bool { return !proc.Same(p.PID, p.Start) })
	return slices.Clone(s.asked)
}

// note remembers who has asked. pollux's own questions are no Codex's.
func (s *Server) note(p proc.Info, m message) {
	if p.Start == 0 || !proc.Same(p.PID, p.Start) || m.Source == us {
		return
	}
	defer s.heard(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(slices.DeleteFunc(s.asked, func(old proc.Info) bool { return old.PID == p.PID }), p)
	s.asked = s.asked[max(0, len(s.asked)-maxAsked):]
	s.of[p.PID] = filepath.Clean(m.Params.WorkspaceRoot)
	maps.DeleteFunc(s.of, func(pid int, _ string) bool {
		return !slices.ContainsFunc(s.asked, func(p proc.Info) bool { return p.PID == pid })
	})
}

// Folder returns the folder that a Codex of Asked has asked for last.
func (s *Server) Folder(asker proc.Info) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[asker.PID]
}

// Serve answers on the socket below a temporary folder what a snapshot says. It calls heard, which must not block, with a Codex that has
// asked. A socket that somebody answers on is left alone, and the
// error is ErrTaken; one that nobody answers on any more is replaced.
func Serve(temp string, snapshot func() *state.Snapshot, heard func(proc.Info), log *slog.Logger) (*Server, error) {
	path := Path(temp)
	switch {
	case ownpipe.Scheme != "unix":
		return nil, errSystem
	case len(path) > ownpipe.MaxPath:
		return nil, errors.New("the path of Codex's socket is too long: " + path)
	}
	if err := safefile.PrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path)
		if err == nil {
			_ = conn.Close()
			return nil, ErrTaken
		}
		if info.Mode().Type() != fs.ModeSocket || !errors.Is(err, ownpipe.ErrRefused) {
			return nil, ErrTaken
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	ln, err := ownpipe.ListenAt(path)
	if err != nil {
		return nil, err
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // it may be another's by then
	}
	s := &Server{snapshot: snapshot, heard: heard, ln: ownpipe.Guard(ln, log), path: path, conns: map[net.Conn]struct{}{}, of: map[int]string{}}
	s.file, _ = os.Lstat(path)
	s.done.Go(s.accept)
	return s, nil
}

// Close ends every connection and removes the socket, as long as it is the one that Serve has made.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	_ = s.ln.Close()
	if now, err := os.Lstat(s.path); err == nil && s.file != nil && os.SameFile(now, s.file) {
		_ = os.Remove(s.path)
	}
	s.done.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(50 * time.Millisecond) // out of descriptors, most likely
			continue
		}
		s.mu.Lock()
		full := s.closed || len(s.conns) >= maxConns
		if !full {
			s.conns[conn] = struct{}{}
		}
		s.mu.Unlock()
		if full {
			_ = conn.Close()
			continue
		}
		s.done.Go(func() { s.serve(conn) })
	}
}

// serve answers one connection until it ends, says nothing for a while, or is no Codex's.
func (s *Server) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	}()
	from, err := ownpipe.Who(conn)
	if err != nil {
		return
	}
	for {
		_ = conn.SetDeadline(time.Now().Add(silence))
		m, err := readFrame(conn)
		if err != nil {
			return
		}
		if m.Type != "request" {
			continue // what programs tell each other
		}
		r := s.answer(m)
		if m.Method == methodContext && r.Error == "" {
			s.note(from, m)
		}
		data, err := frame(r)
		if err != nil {
			return
		}
		if _, err := conn.Write(data); err != nil {
			return
		}
	}
}

func (s *Server) answer(m message) response {
	r := response{Type: "response", RequestID: m.RequestID, Result: "success", Method: m.Method, HandledBy: us}
	switch m.Method {
	case "initialize":
		r.Value = map[string]string{"clientId": us}
	case methodContext:
		snap := s.snapshot()
		here := func(root string) bool {
			return paths.Within(paths.Real(root), paths.Real(m.Params.WorkspaceRoot))
		}
		if m.Params.WorkspaceRoot == "" || !slices.ContainsFunc(snap.Roots, here) {
			r.Result, r.Error = "error", "no-client-found" // what is open there is another project's
			return r
		}
		r.Value = map[string]any{"ideContext": contextOf(snap, m.Params.WorkspaceRoot)}
	default:
		r.Result, r.Error = "error", "no-handler-for-request"
	}
	return r
}

type place struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start place `json:"start"`
	End   place `json:"end"`
}

type file struct {
	Label  string `json:"label"`
	Path   string `json:"path"` // from the workspace's folder, where it lies in it
	FSPath string `json:"fsPath"`
}

type activeFile struct {
	file

	Selection  span   `json:"selection"`
	Content    string `json:"activeSelectionContent"`
	Selections []span `json:"selections"`
}

type ideContext struct {
	Active *activeFile `json:"activeFile,omitempty"`
	Open   []file      `json:"openTabs"`
}

// contextOf is what the user looks at, with 0-based lines (SPEC CX-2). A file whose name is not UTF-8 is not named.
func contextOf(snap *state.Snapshot, root string) ideContext {
	named := func(path string) file {
		f := file{filepath.Base(path), path, path}
		if rel, err := filepath.Rel(paths.Real(root), path); err == nil && filepath.IsLocal(rel) {
			f.Path = rel
		}
		return f
	}
	c := ideContext{Open: []file{}}
	for _, f := range snap.Files {
		if utf8.ValidString(f.Path) {
			c.Open = append(c.Open, named(f.Path))
		}
	}
	if snap.Active == "" || !utf8.ValidString(snap.Active) {
		return c
	}
	a := &activeFile{file: named(snap.Active), Selections: []span{}}
	if snap.Cursor != nil {
		a.Selection = span{place(*snap.Cursor), place(*snap.Cursor)}
	}
	for _, one := range snap.Selections {
		a.Selections = append(a.Selections, span{place(one.Start), place(one.End)})
	}
	if len(snap.Selections) > 0 {
		a.Selection, a.Content = a.Selections[0], text.CutUTF16(snap.Selections[0].Text, maxSelected)
	}
	c.Active = a
	return c
}
