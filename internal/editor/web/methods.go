package web

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/rpc"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// requestTimeout ends the context of a page's request.
const requestTimeout = 10 * time.Second

// The error codes of the page protocol.
const (
	codeNotFound  = -32010
	codeBinary    = -32011
	codeTooBig    = -32012
	codeOutside   = -32013 // or protected
	codeConflict  = -32014 // data {version}
	codeForbidden = -32015
	codeNotEmpty  = -32016
	codeExists    = -32017
	codeSettled   = -32020
	codeEmptied   = -32021
	codeStale     = -32022 // something is newer, and has been told
	codeDiverged  = -32023 // the file has changed where the proposal does
)

// A handler answers one method for one page.
type handler func(ctx context.Context, p *page, params json.RawMessage) (any, error)

// on adapts a method with typed parameters. Unknown fields are ignored: the
// page may be newer.
func on[P any](f func(context.Context, *page, P) (any, error)) handler {
	return func(ctx context.Context, p *page, raw json.RawMessage) (any, error) {
		var params P
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &params); err != nil {
				return nil, rpc.Errorf(rpc.CodeInvalidParams, "wrong parameters: %s", err)
			}
		}
		return f(ctx, p, params)
	}
}

// exact refuses parameters that decoding would change: a text or path must arrive as it was sent (SPEC F-6).
func exact(h handler) handler {
	return func(ctx context.Context, p *page, raw json.RawMessage) (any, error) {
		if !text.Exact(raw) {
			return nil, invalid("this holds half a character (a lone surrogate), which no file can hold; remove it and try again")
		}
		return h(ctx, p, raw)
	}
}

// empty is a result or parameter without content.
type empty struct{}

// handlers is the list of the page's methods.
func handlers(name string) (h handler, ok bool) {
	switch name {
	case "hello":
		h = on(hello)
	case "ping":
		h = on(func(context.Context, *page, empty) (any, error) { return empty{}, nil })
	case "tree/list":
		h = on(treeList)
	case "tree/find":
		h = on(treeFind)
	case "file/read":
		h = exact(on(fileRead))
	case "file/save":
		h = exact(on(fileSave))
	case "file/create":
		h = exact(on(fileCreate))
	case "file/rename":
		h = exact(on(fileRename))
	case "file/delete":
		h = exact(on(fileDelete))
	case "context/update":
		h = on(contextUpdate)
	case "diff/read":
		h = on(diffRead)
	case "diff/edit":
		h = exact(on(diffEdit))
	case "diff/accept":
		h = exact(on(diffAccept))
	case "diff/resolve":
		h = exact(on(diffResolve))
	case "diff/reject":
		h = on(diffReject)
	case "policy/set":
		h = on(policySet)
	case "context/pause":
		h = on(contextPause)
	case "agent/mention":
		h = on(agentMention)
	case "history/list":
		h = on(historyList)
	case "history/read":
		h = on(historyRead)
	case "history/undo":
		h = on(historyUndo)
	default:
		return nil, false
	}
	return h, true
}

// decides says whether a method is the user's alone (SPEC §11.1).
func decides(method string) bool {
	switch method {
	case "diff/edit", "diff/accept", "diff/resolve", "diff/reject", "policy/set", "context/pause", "agent/mention", "history/undo":
		return true
	}
	return false
}

// invalid is the error of parameters that no honest page sends.
func invalid(what string) error { return rpc.Errorf(rpc.CodeInvalidParams, "%s", what) }

// wireError gives an error the code that the page reacts to. The message is
// for a person.
func wireError(err error) *rpc.Error {
	var e *rpc.Error
	if errors.As(err, &e) {
		return e
	}
	var conflict *workspace.ConflictError
	if errors.As(err, &conflict) {
		return &rpc.Error{Code: codeConflict, Message: err.Error(), Data: map[string]any{"version": orNull(conflict.Version)}}
	}
	code := rpc.CodeInternal
	for _, known := range []struct {
		err  error
		code int
	}{
		{workspace.ErrBadPath, rpc.CodeInvalidParams},
		{workspace.ErrOutside, codeOutside},
		{workspace.ErrProtected, codeOutside},
		{workspace.ErrBinary, codeBinary},
		{workspace.ErrNotFile, codeBinary},
		{workspace.ErrTooBig, codeTooBig},
		{workspace.ErrNotEmpty, codeNotEmpty},
		{review.ErrSettled, codeSettled},
		{review.ErrEmptied, codeEmptied},
		{review.ErrStale, codeStale},
		{review.ErrConflict, codeDiverged},
		{review.ErrTooBig, codeTooBig},
		{fs.ErrNotExist, codeNotFound},
		{syscall.ENOTDIR, codeNotFound},
		{fs.ErrExist, codeExists},
		{fs.ErrPermission, codeForbidden},
	} {
		if errors.Is(err, known.err) {
			code = known.code
			break
		}
	}
	return rpc.Errorf(code, "%s", err)
}

// orNull is how a version that is not there goes over the wire.
func orNull(version string) any {
	if version == "" {
		return nil
	}
	return version
}

type root struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

type agent struct {
	Port int `json:"port"`
}

type helloResult struct {
	Version  string            `json:"version"`
	PID      int               `json:"pid"`
	Name     string            `json:"name"`
	Agent    agent             `json:"agent"`
	Roots    []root            `json:"roots"`
	Sessions []session         `json:"sessions"`
	Diffs    []diffInfo        `json:"diffs"`
	Rules    []review.Rule     `json:"rules"`
	Troubles []control.Trouble `json:"troubles"`
	Platform string            `json:"platform"`
}

// hello introduces a page. From here on it hears notifications; what it is
// told of open diffs may be outdated before it arrives, which settleHello mends.
func hello(_ context.Context, p *page, in struct {
	ClientID string `json:"clientId"`
}) (any, error) {
	if in.ClientID == "" || len(in.ClientID) > 128 {
		return nil, invalid("clientId must have 1 to 128 bytes")
	}
	s := p.s
	s.mu.Lock()
	if !p.greeted {
		p.greeted = true
		s.takeOver(p, in.ClientID)
	}
	s.mu.Unlock()
	pending := s.o.Registry.Pending()
	p.s.o.Workspace.Warm() // its user may soon open a file by name
	out := helloResult{
		Version: s.o.Version, PID: s.o.PID, Name: s.o.Name, Agent: agent{s.o.AgentPort},
		Roots: s.rootList(), Sessions: s.sessionList(), Diffs: []diffInfo{},
		Rules: s.ruleList(), Troubles: s.troubleList(), Platform: runtime.GOOS,
	}
	for _, d := range pending {
		out.Diffs = append(out.Diffs, infoOf(d))
	}
	s.mu.Lock()
	p.promised, p.settled = pending, false
	s.mu.Unlock()
	return out, nil
}

func (s *Server) rootList() []root {
	roots := []root{}
	for _, r := range s.o.Workspace.Roots() {
		roots = append(roots, root{r, filepath.Base(r)})
	}
	return roots
}

func (s *Server) ruleList() []review.Rule {
	return append([]review.Rule{}, s.o.Registry.Rules()...) // never null
}

type session struct {
	ID      int    `json:"id"`
	Label   string `json:"label"`
	Since   int64  `json:"since"` // Unix milliseconds
	Process string `json:"process,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Told    string `json:"told,omitempty"`
}

func (s *Server) sessionList() []session {
	list := []session{}
	if s.o.Sessions == nil {
		return list
	}
	for _, x := range s.o.Sessions() {
		list = append(list, session{x.ID, x.Label, x.Since.UnixMilli(), x.Process, x.PID, x.Told})
	}
	return list
}

// SessionsChanged tells the pages that an agent came or went.
func (s *Server) SessionsChanged() {
	s.broadcast("sessions/changed", map[string]any{"sessions": s.sessionList()})
}

func (s *Server) troubleList() []control.Trouble {
	if s.o.Troubles == nil {
		return []control.Trouble{}
	}
	return append([]control.Trouble{}, s.o.Troubles()...) // never null
}

// TroublesChanged tells the pages what the companion does without.
func (s *Server) TroublesChanged() {
	s.broadcast("troubles/changed", map[string]any{"troubles": s.troubleList()})
}

// RootsChanged tells the pages that the workspace has other folders.
func (s *Server) RootsChanged() {
	s.broadcast("roots/changed", map[string]any{"roots": s.rootList()})
}

// HistoryChanged tells the pages that a proposal has become part of the history.
func (s *Server) HistoryChanged() { s.broadcast("history/changed", empty{}) }

func policySet(_ context.Context, p *page, rule review.Rule) (any, error) {
	switch rule.Mode {
	case review.Ask, review.AcceptAll, review.Terminal:
	default:
		return nil, invalid("mode must be ask, accept or terminal")
	}
	if len(rule.Pattern) > workspace.MaxPath || len(rule.Owner) > 256 {
		return nil, invalid("owner or pattern is too long")
	}
	p.s.o.Registry.SetRule(rule)
	return map[string]any{"rules": p.s.ruleList()}, nil
}
