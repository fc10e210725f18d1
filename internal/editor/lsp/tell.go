package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// The kinds of window/showMessage.
const (
	messageError = 1
	messageInfo  = 3
)

// errPlain: an editor without a plugin cannot do this.
var errPlain = errors.New("this editor has no plugin of pollux's")

// SessionsChanged must be called when an agent has come or gone.
func (s *Server) SessionsChanged() {
	for _, who := range []chan struct{}{s.wake, s.opened} {
		poke(who)
	}
}

// poke wakes the reader of a channel with one place.
func poke(who chan struct{}) {
	select {
	case who <- struct{}{}:
	default:
	}
}

// Whether agents are told what the user looks at.
const (
	contextOn     = "on"
	contextPaused = "paused"
)

type status struct {
	Sessions []Session `json:"sessions"`
	Pending  int       `json:"pendingDiffs"`
	// Context is "on" or "paused"; while paused, agents are not told what the user looks at.
	Context string `json:"context"`
	Sharing
}

// tellStatus keeps the editor's status line up to date until the server ends.
func (s *Server) tellStatus() {
	if !s.Full() {
		return
	}
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return
	}
	var last *status
	for {
		if now := s.status(); now != nil && !reflect.DeepEqual(now, last) {
			s.peer.Notify("pollux/didChangeStatus", now)
			last = now
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
		select {
		case <-time.After(statusEvery):
		case <-s.ctx.Done():
			return
		}
	}
}

// sessions returns the sessions of a status; nil gives an empty list.
func (st *status) sessions() []Session {
	if st == nil {
		return nil
	}
	return st.Sessions
}

func (s *Server) status() *status {
	s.mu.Lock()
	c := s.companion
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	now := &status{Sessions: c.Sessions(), Pending: len(s.core.Registry.Pending()), Context: contextOn, Sharing: c.Sharing()}
	if s.core.Store.Paused() {
		now.Context = contextPaused
	}
	if now.Sessions == nil {
		now.Sessions = []Session{}
	}
	return now
}

// say shows a message in the editor, once it accepts messages.
func (s *Server) say(kind int, format string, args ...any) {
	select {
	case <-s.ready:
		s.peer.Notify("window/showMessage", obj{"type": kind, "message": "pollux: " + fmt.Sprintf(format, args...)})
	default:
	}
}

// complain reports a problem, and keeps it for pollux.status.
func (s *Server) complain(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	s.mu.Lock()
	s.lastError = message
	s.mu.Unlock()
	s.log.Warn("told the user", "message", message)
	s.say(messageError, "%s", message)
}

// Complain shows a problem to the user, and keeps it for pollux.status.
func (s *Server) Complain(message string) { s.complain("%s", message) }

// OpenDocument has the editor show a file, at a position unless at is nil. It fails when
// the editor refuses, or does not answer within Options.OpenWithin.
func (s *Server) OpenDocument(ctx context.Context, path string, at *state.Position, takeFocus bool) error {
	params := obj{"uri": paths.URI(path), "takeFocus": takeFocus}
	if at != nil {
		params["selection"] = obj{"start": at, "end": at}
	}
	var out struct {
		Opened *bool `json:"opened"`
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.OpenWithin)
	defer cancel()
	if err := s.call(ctx, "pollux/openDocument", params, &out); err != nil {
		return fmt.Errorf("the editor did not open %q: %w", path, err)
	}
	if out.Opened == nil || !*out.Opened {
		return fmt.Errorf("the editor did not open %q", path)
	}
	return nil
}

// SaveDocument has the editor write the user's unsaved changes of a file. It fails, and says why, when the file has changed on disk since
// the editor read it, when the editor refuses, and when it does not answer within Options.OpenWithin.
func (s *Server) SaveDocument(ctx context.Context, path string) error {
	var out struct {
		Saved bool   `json:"saved"`
		Why   string `json:"why"`
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.OpenWithin)
	defer cancel()
	if err := s.call(ctx, "pollux/saveDocument", obj{"uri": paths.URI(path)}, &out); err != nil {
		return fmt.Errorf("the editor did not save %q: %w", path, err)
	}
	if !out.Saved {
		return fmt.Errorf("the editor did not save %q: %s", path, cmp.Or(out.Why, "it does not say why"))
	}
	return nil
}

// Ask puts a question to the user and waits for the answer; "" when they made no choice.
// When ctx ends, the editor is told to take the question away.
func (s *Server) Ask(ctx context.Context, title, message string, choices []string) (string, error) {
	var out struct {
		Choice *string `json:"choice"`
	}
	if err := s.call(ctx, "pollux/ask", obj{"title": title, "message": message, "choices": choices}, &out); err != nil {
		return "", fmt.Errorf("the editor did not ask: %w", err)
	}
	if out.Choice != nil {
		for _, c := range choices {
			if c == *out.Choice {
				return c, nil
			}
		}
	}
	return "", nil
}

// Type has the editor type a text into its terminal whose first process is pid. typed is false when the editor has no such terminal.
func (s *Server) Type(ctx context.Context, pid int, text string) (typed bool, err error) {
	h := s.hello.Load()
	if h == nil || h.Pollux == nil || !h.Pollux.Types {
		return false, errPlain
	}
	var out struct {
		Typed bool `json:"typed"`
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.OpenWithin)
	defer cancel()
	err = s.call(ctx, "pollux/typeText", obj{"processId": pid, "text": text}, &out)
	return out.Typed, err
}

// mentionCommand puts a mention into an agent's prompt. It waits for the agent's terminal.
func (s *Server) mentionCommand(arguments json.RawMessage) (any, error) {
	var p mention
	if err := decode(arguments, &p); err != nil {
		return nil, err
	}
	if s.core.Mention == nil {
		return nil, rpc.Errorf(rpc.CodeInternal, "this companion mentions nothing")
	}
	p.Path = paths.OfText(p.Path)
	done, err := s.core.Mention(s.ctx, control.Mention{Session: p.Session, Path: p.Path, First: p.First, Last: p.Last, Words: p.Words, Terminal: p.Terminal})
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%s", err)
	}
	return obj{"session": done.Session, "by": done.By}, nil
}

// call sends the editor a request, once it accepts requests.
func (s *Server) call(ctx context.Context, method string, params, out any) error {
	if !s.Full() {
		return errPlain
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.peer.Call(ctx, method, params, out)
}

// A command is a workspace/executeCommand of a user or a plugin.
type command func(s *Server, arguments json.RawMessage) (any, error)

func commands() map[string]command {
	return map[string]command{
		"pollux.status":     (*Server).statusCommand,
		"pollux.review":     (*Server).reviewCommand,
		"pollux.accept":     (*Server).acceptCommand,
		"pollux.reject":     (*Server).rejectCommand,
		"pollux.setPolicy":  (*Server).policyCommand,
		"pollux.setContext": (*Server).contextCommand,
		"pollux.history":    (*Server).historyCommand,
		"pollux.undo":       (*Server).undoCommand,
		"pollux.mention":    (*Server).mentionCommand,
	}
}

func (s *Server) execute(params json.RawMessage) (any, error) {
	var p struct {
		Command   string                `json:"command"`
		Arguments list[json.RawMessage] `json:"arguments"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	f, ok := commands()[p.Command]
	if !ok {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "there is no command %q", p.Command)
	}
	var arguments json.RawMessage
	if len(p.Arguments) > 0 {
		arguments = p.Arguments[0]
	}
	return f(s, arguments)
}

// pendingDiff is one line of pollux.status.
type pendingDiff struct {
	ID    string `json:"diffId"`
	Path  string `json:"filePath"`
	Title string `json:"title"`
	Owner string `json:"session"`
}

func (s *Server) statusCommand(json.RawMessage) (any, error) {
	s.mu.Lock()
	c, lastError := s.companion, s.lastError
	s.mu.Unlock()
	if c == nil {
		return nil, rpc.Errorf(codeNotInitialized, "the companion has stopped")
	}
	// Empty lists instead of null, since editors loop over them.
	info, diffs := c.Info(), []pendingDiff{}
	info.Roots = append([]string{}, info.Roots...)
	sessions, rules := append([]Session{}, c.Sessions()...), append([]review.Rule{}, s.core.Registry.Rules()...)
	for _, d := range s.core.Registry.Pending() {
		p := d.Proposal()
		diffs = append(diffs, pendingDiff{d.ID(), p.Path, p.Title, d.Label()})
	}
	return struct {
		Info
		Sharing
		Sessions  []Session     `json:"sessions"`
		Diffs     []pendingDiff `json:"diffs"`
		Rules     []review.Rule `json:"rules"`
		LastError string        `json:"lastError,omitempty"`
	}{info, c.Sharing(), sessions, diffs, rules, lastError}, nil
}

// contextCommand stops or resumes telling agents what the user looks at.
func (s *Server) contextCommand(arguments json.RawMessage) (any, error) {
	var p struct {
		State string `json:"state"`
	}
	if err := decode(arguments, &p); err != nil {
		return nil, err
	}
	if p.State != contextOn && p.State != contextPaused {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%q is not a state: %s or %s", p.State, contextOn, contextPaused)
	}
	s.core.Store.Pause(p.State == contextPaused)
	return p, nil
}

func (s *Server) reviewCommand(json.RawMessage) (any, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.OpenWithin)
	defer cancel()
	return nil, s.core.Page.Bring(ctx)
}

// chosen returns the diff that a command names, or else the only open one.
func (s *Server) chosen(arguments json.RawMessage) (*review.Diff, error) {
	var p struct {
		ID string `json:"diffId"`
	}
	if err := decode(arguments, &p); err != nil {
		return nil, err
	}
	pending := s.core.Registry.Pending()
	if p.ID == "" && len(pending) == 1 {
		return pending[0], nil
	}
	for _, d := range pending {
		if d.ID() == p.ID {
			return d, nil
		}
	}
	switch {
	case p.ID != "":
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "no diff %q is open; it may have been decided already", p.ID)
	case len(pending) == 0:
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "no diff is open")
	}
	return nil, rpc.Errorf(rpc.CodeInvalidParams, "%d diffs are open; say which one by diffId (pollux.status lists them)", len(pending))
}

func (s *Server) acceptCommand(arguments json.RawMessage) (any, error) {
	d, err := s.chosen(arguments)
	if err != nil {
		return nil, err
	}
	seen := d.Now().Seen
	s.mu.Lock()
	crossed := false
	if v := s.views[d.ID()]; v != nil && v.editor {
		seen, crossed = review.Seen{Text: max(v.seen.Text, v.own), Base: v.seen.Base, By: s}, v.crossed
	}
	s.mu.Unlock()
	if crossed {
		return nil, review.ErrTextChanged
	}
	return obj{"diffId": d.ID(), "filePath": d.Proposal().Path}, s.core.Registry.Accept(d.ID(), seen, nil)
}

func (s *Server) rejectCommand(arguments json.RawMessage) (any, error) {
	d, err := s.chosen(arguments)
	if err != nil {
		return nil, err
	}
	return obj{"diffId": d.ID(), "filePath": d.Proposal().Path}, s.core.Registry.Reject(d.ID())
}

// policyCommand makes a rule (SPEC F-11): for the session or the file of a diff, for a
// pattern, or, without a scope, for everything.
func (s *Server) policyCommand(arguments json.RawMessage) (any, error) {
	var p struct {
		Policy  review.Mode `json:"policy"`
		Scope   string      `json:"scope"`
		Pattern string      `json:"pattern"`
		Session string      `json:"session"` // of the scope session; that of a diff, or the only one, where it is empty
	}
	if err := decode(arguments, &p); err != nil {
		return nil, err
	}
	rule := review.Rule{Mode: p.Policy}
	switch p.Policy {
	case review.Ask, review.AcceptAll, review.Terminal:
	default:
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%q is not a policy; use ask, accept or terminal", p.Policy)
	}
	switch {
	case p.Scope == "pattern" || p.Scope == "file" && p.Pattern != "":
		if p.Pattern == "" {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "the scope pattern needs a pattern")
		}
		rule.Pattern = p.Pattern
	case p.Scope == "file":
		d, err := s.chosen(arguments)
		if err != nil {
			return nil, err
		}
		rule.Pattern = review.FilePattern(d.Proposal().Path)
	case p.Scope == "session" && p.Session != "":
		rule.Owner = p.Session
	case p.Scope == "session":
		owner, err := s.session(arguments)
		if err != nil {
			return nil, err
		}
		rule.Owner = owner
	case p.Scope != "":
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%q is not a scope; use session, file or pattern", p.Scope)
	}
	s.core.Registry.SetRule(rule)
	return obj{"rules": s.core.Registry.Rules()}, nil
}

// session returns the label of a diff's session, or of the only connected one.
func (s *Server) session(arguments json.RawMessage) (string, error) {
	d, err := s.chosen(arguments)
	if err == nil {
		return d.Label(), nil
	}
	if st := s.status(); st != nil && len(st.Sessions) == 1 {
		return st.Sessions[0].Name, nil
	}
	return "", err
}
