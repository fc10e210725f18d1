package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// codeStale refuses a decision when the text or the file is newer than the editor has
// shown (SPEC F-13). The newer one was sent to the editor, or will be in a moment.
const codeStale = -32004

// didChangeDiff records the proposal as the user has edited it.
func (s *Server) didChangeDiff(params json.RawMessage) (any, error) {
	var p struct {
		ID      string          `json:"diffId"`
		Version int             `json:"version"`
		From    *int            `json:"from"` // the version that the plugin was shown last; version 2
		Content json.RawMessage `json:"content"`
	}
	if err := decodeText(params, &p, &p.Content); err != nil {
		return nil, err
	}
	content, err := exact(p.Content)
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%s: %v", p.ID, err)
	}
	return s.inTurn(p.ID, false, func() (any, error) { return nil, s.proposalEdited(p.ID, p.From, p.Version, content) })
}

// proposalEdited records an edit of the editor's of a diff that it shows, or has kept.
func (s *Server) proposalEdited(id string, from *int, number int, content string) error {
	s.mu.Lock()
	if a := s.announced[id]; a != nil {
		a.text, a.edit = content, number // takeUp goes on from this text
	}
	v := s.views[id]
	old := v == nil || number < v.edit
	s.mu.Unlock()
	if old {
		return nil
	}
	err := s.edited(v, from, number, content)
	s.tellTooBig(v, err)
	if err != nil && !errors.Is(err, review.ErrSettled) {
		return rpc.Errorf(rpc.CodeInvalidParams, "%s: %v", id, err)
	}
	return nil
}

// tellTooBig tells the user once, as soon as it happens, that a proposal has become too long to accept.
func (s *Server) tellTooBig(v *view, err error) {
	tooBig := errors.Is(err, review.ErrTooBig)
	s.mu.Lock()
	news := tooBig && !v.tooBig
	v.tooBig = tooBig
	s.mu.Unlock()
	if news {
		s.complain("%s cannot be accepted like this: %v", filepath.Base(v.diff.Proposal().Path), err)
	}
}

// edited records an edit of the editor's under its number, 0 for none. A plugin of version 2 says which version it edited.
func (s *Server) edited(v *view, from *int, number int, content string) error {
	at, was := s.textOf(v, from)
	return s.edit(v, from, number, review.Edit{Text: content, From: &at, Was: was, By: s})
}

// edit is edited, with everything that the registry is to know.
func (s *Server) edit(v *view, from *int, number int, e review.Edit) error {
	s.mu.Lock()
	v.holds++ // hold the view: a merge is sent only when it is known which edit is in it
	s.mu.Unlock()
	defer s.release(v)
	version, err := s.core.Registry.Edit(v.diff.ID(), e)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.edit = max(v.edit, number)
	if from == nil {
		v.seen.Text = max(v.seen.Text, version)
		return nil
	}
	v.crossed = *from != v.seen.Text || v.again
	v.own, v.from = version, *from
	v.texts.Edited(*from, e.Text)
	return nil
}

// textOf finds the text that the editor has. The editor names the version that it was shown last; the result is that version here, and the text where it is still kept.
func (s *Server) textOf(v *view, from *int) (version int, text *string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case from == nil:
		return v.seen.Text, nil
	case *from == v.from:
		return v.own, v.texts.Of(*from)
	}
	return *from, v.texts.Of(*from)
}

// diffResolved takes the user's decision from a plugin of version 1. The editor has
// closed its view already; when the decision cannot be taken, the view opens again.
func (s *Server) diffResolved(params json.RawMessage) (any, error) {
	var p struct {
		ID      string          `json:"diffId"`
		Outcome string          `json:"outcome"`
		Content json.RawMessage `json:"content"`
	}
	if err := decodeText(params, &p, &p.Content); err != nil {
		return nil, err
	}
	return s.inTurn(p.ID, true, func() (any, error) { return nil, s.resolved(p.ID, p.Outcome == "accepted", p.Content) })
}

// resolved takes a decision whose view the editor has closed.
func (s *Server) resolved(id string, accepted bool, text json.RawMessage) error {
	v := s.decides(id)
	if v == nil {
		return nil // the agent took it back first
	}
	if !accepted {
		return ignoreSettled(s.core.Registry.Reject(id))
	}
	content, err := optional(text)
	if err == nil {
		s.mu.Lock()
		seen := v.seen
		s.mu.Unlock()
		err = ignoreSettled(s.core.Registry.Accept(id, seen, content))
	}
	switch {
	case errors.Is(err, review.ErrConflict):
		s.tasks.Go(func() { s.askConflict(v) })
	case err != nil:
		s.again(v, err)
	}
	return nil
}

// optional is a text that may be missing.
func optional(raw json.RawMessage) (*string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	content, err := exact(raw)
	return &content, err
}

// A decision is what pollux/resolveDiff says.
type decision struct {
	ID      string          `json:"diffId"`
	Version int             `json:"version"`
	Base    int             `json:"baseVersion"`
	Outcome string          `json:"outcome"` // accepted or rejected; keep or take to end a conflict
	Content json.RawMessage `json:"content"`
	Edit    int             `json:"edit"` // its number in pollux/didChangeDiff; 0 from older plugins
}

// resolveDiff takes the user's decision from a plugin of version 2, which closes its
// view once the decision is taken.
func (s *Server) resolveDiff(params json.RawMessage) (any, error) {
	var p decision
	if err := decodeText(params, &p, &p.Content); err != nil {
		return nil, err
	}
	return s.inTurn(p.ID, true, func() (any, error) { return s.decide(p) })
}

// decide is resolveDiff, once the diff is open.
func (s *Server) decide(p decision) (any, error) {
	s.mu.Lock()
	v := s.views[p.ID]
	s.mu.Unlock()
	if v == nil {
		return obj{"settled": true}, nil // the agent took it back first
	}
	content, err := optional(p.Content)
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%s: %v", p.ID, err)
	}
	if content != nil && slices.Contains([]string{"accepted", "keep", "take"}, p.Outcome) {
		if err := s.edited(v, &p.Version, p.Edit, *content); errors.Is(err, review.ErrSettled) {
			return obj{"settled": true}, nil
		} else if err != nil {
			return nil, err
		}
	}
	at, _ := s.textOf(v, &p.Version)
	seen := review.Seen{Text: at, Base: p.Base - v.ahead}
	switch p.Outcome {
	case "rejected":
		s.decides(p.ID)
		return obj{"settled": true}, ignoreSettled(s.core.Registry.Reject(p.ID))
	case "keep", "take":
		err = ignoreSettled(s.core.Registry.Resolve(p.ID, seen, p.Outcome == "take"))
		if err == nil {
			return obj{"settled": false}, nil
		}
	case "accepted":
		s.decides(p.ID)
		err = ignoreSettled(s.core.Registry.Accept(p.ID, seen, content))
		if err == nil {
			return obj{"settled": true}, nil
		}
		s.mu.Lock()
		s.views[p.ID] = v
		s.mu.Unlock()
	default:
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%q is no outcome; use accepted, rejected, keep or take", p.Outcome)
	}
	s.refresh(v)
	if errors.Is(err, review.ErrStale) || errors.Is(err, review.ErrConflict) {
		return nil, rpc.Errorf(codeStale, "%s: %v", filepath.Base(v.diff.Proposal().Path), err)
	}
	return nil, err
}

func ignoreSettled(err error) error {
	if errors.Is(err, review.ErrSettled) {
		return nil
	}
	return err
}

// again opens a diff once more when accepting it has failed.
func (s *Server) again(v *view, reason error) {
	s.complain("%s is still open: %v", filepath.Base(v.diff.Proposal().Path), reason)
	s.mu.Lock()
	s.views[v.diff.ID()] = v
	s.mu.Unlock()
	s.tasks.Go(func() { s.reopen(v) })
}

// reopen shows a diff that the editor has closed.
func (s *Server) reopen(v *view) {
	if _, settled := v.diff.Outcome(); settled {
		s.drop(v.diff.ID())
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.o.OpenWithin)
	defer cancel()
	err := s.openDiff(ctx, v, true)
	if err != nil {
		err = s.showAside(ctx, v)
	}
	if err != nil {
		_ = s.core.Registry.Reject(v.diff.ID())
	}
}

// The ways to end a conflict.
const (
	keepProposal = "Keep the proposal"
	takeFile     = "Take the file's lines"
	lookAgain    = "Look again"
)

// askConflict asks the user of a plugin of version 1 which text stands: the proposal,
// which the user has accepted, or the file's, with which it conflicts.
func (s *Server) askConflict(v *view) {
	d := v.diff
	s.mu.Lock()
	s.views[d.ID()] = v
	s.mu.Unlock()
	now := d.Now()
	choice := ""
	if now.Conflict != nil {
		choices := []string{keepProposal, takeFile, lookAgain}
		if len(now.Conflict.Places) == 0 {
			choices = []string{keepProposal, lookAgain}
		}
		var err error
		choice, err = s.Ask(s.ctx, d.Proposal().Title, now.Conflict.Reason+". Which of the two stands?", choices)
		if err != nil {
			s.log.Info("the editor does not ask about a conflict", "err", err)
		}
	}
	var err error
	switch choice {
	case keepProposal:
		if err = s.core.Registry.Resolve(d.ID(), now.Seen, false); err == nil {
			err = s.core.Registry.Accept(d.ID(), now.Seen, nil)
		}
		if ignoreSettled(err) == nil {
			s.drop(d.ID())
			return
		}
	case takeFile:
		err = s.core.Registry.Resolve(d.ID(), now.Seen, true)
	default:
		err = review.ErrConflict
	}
	if err != nil {
		s.complain("%s is still open: %v", filepath.Base(d.Proposal().Path), err)
	}
	s.reopen(v)
}
