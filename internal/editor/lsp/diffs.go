package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// A view is one diff that this process shows, from Show to Close.
type view struct {
	diff    *review.Diff
	editor  bool // the editor shows it, not the page alone
	version int  // of the last pollux/didChangeDiff
	// forget ends the question that asks for a decision, nil without one.
	forget context.CancelFunc
}

// Show implements review.View: in the editor where it can, else on the page.
func (s *Server) Show(ctx context.Context, d *review.Diff) error {
	v := &view{diff: d, editor: s.diffs()}
	s.mu.Lock()
	text, shown := s.announced[d.ID()]
	delete(s.announced, d.ID())
	s.views[d.ID()] = v
	s.mu.Unlock()
	if shown { // since before a crash of pollux (SPEC L-3)
		_ = s.core.Registry.Edit(d.ID(), text)
		return nil
	}
	if v.editor {
		err := s.openDiff(ctx, d, true)
		if err == nil {
			s.core.Page.Tell(ctx, d)
			return nil
		}
		s.log.Info("the editor does not show a diff", "err", err)
		s.closeDiff(d.ID(), "") // it may open it late
	}
	return s.showAside(ctx, v)
}

// showAside shows a diff on the page, and asks in the editor what can be asked there.
func (s *Server) showAside(ctx context.Context, v *view) error {
	s.mu.Lock()
	v.editor = false
	s.mu.Unlock()
	err := s.core.Page.Show(ctx, v.diff)
	asks := s.question(v)
	switch {
	case err == nil:
		s.say(messageInfo, "%s waits for you in pollux's editor page", v.diff.Proposal().Title)
	case asks:
		s.complain("only accept or reject can be chosen here: %v", err)
	default:
		s.drop(v.diff.ID())
		s.complain("a diff cannot be shown: %v", err)
		return err
	}
	return nil
}

// openDiff has the editor show d with the text as it is now; one that it shows already is replaced.
func (s *Server) openDiff(ctx context.Context, d *review.Diff, takeFocus bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.OpenWithin)
	defer cancel()
	select {
	case <-s.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	p := d.Proposal()
	text, _ := d.Text()
	var out struct {
		Opened         *bool `json:"opened"`
		BufferModified bool  `json:"bufferModified"`
	}
	err := s.peer.Call(ctx, "pollux/openDiff", obj{
		"diffId": d.ID(), "filePath": p.Path, "uri": uriOf(p.Path), "isNewFile": p.IsNew,
		"oldText": p.Old, "newText": text, "title": p.Title, "takeFocus": takeFocus,
	}, &out)
	switch {
	case err != nil:
		return err
	case out.Opened == nil || !*out.Opened: // some clients answer null to what they do not know
		return errors.New("the editor did not say that it opened the diff")
	}
	return nil
}

// TextChanged shows a diff anew that the editor shows and whose text was edited elsewhere: else the editor would
// answer for it with the text that it has.
func (s *Server) TextChanged(d *review.Diff) {
	s.mu.Lock()
	v := s.views[d.ID()]
	shows := v != nil && v.editor
	if shows {
		v.version = 0 // the new view's count begins anew
	}
	s.mu.Unlock()
	if !shows {
		return
	}
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.o.OpenWithin)
		defer cancel()
		if err := s.openDiff(ctx, d, false); err != nil {
			s.log.Info("the editor does not take an edit made elsewhere", "err", err)
		}
	})
}

// Close implements review.View.
func (s *Server) Close(d *review.Diff, o review.Outcome) {
	s.core.Page.Close(d, o)
	v := s.drop(d.ID())
	if v == nil {
		return // the editor has closed it itself
	}
	if v.forget != nil {
		v.forget()
	}
	if v.editor {
		s.closeDiff(d.ID(), o.Kind.String())
	}
}

// Content implements review.View: the agent takes the diff back, so that the
// editor closes its view with the answer.
func (s *Server) Content(ctx context.Context, d *review.Diff) (content string, ok bool) {
	s.mu.Lock()
	v := s.views[d.ID()]
	if v != nil && v.editor {
		delete(s.views, d.ID())
	}
	s.mu.Unlock()
	if v == nil || !v.editor {
		return s.core.Page.Content(ctx, d)
	}
	var out struct {
		Content json.RawMessage `json:"content"`
	}
	if err := s.peer.Call(ctx, "pollux/closeDiff", obj{"diffId": d.ID()}, &out); err != nil {
		s.log.Info("the editor did not say its text of a diff", "err", err)
		return "", false
	}
	content, err := exact(out.Content)
	return content, err == nil
}

// drop forgets a view and returns it, nil when there is none.
func (s *Server) drop(id string) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[id]
	delete(s.views, id)
	return v
}

// closeDiff takes a view of the editor's away, aside; what it answers is not of interest.
func (s *Server) closeDiff(id, outcome string) {
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.o.OpenWithin)
		defer cancel()
		params := obj{"diffId": id}
		if outcome != "" {
			params["outcome"] = outcome
		}
		select {
		case <-s.ready:
			_ = s.peer.Call(ctx, "pollux/closeDiff", params, nil)
		case <-ctx.Done():
		}
	})
}

// StillShown is the text of a view that the editor has shown since before this process, by its diff's
// id; not ok once the diff is open again, or known to be none.
func (s *Server) StillShown(id string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok = s.announced[id]
	return text, ok
}

// forgetUnknown closes views that the editor kept from before a crash and
// whose agent cannot be told any more, and says so: the user may have been writing there.
func (s *Server) forgetUnknown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	hello := s.hello.Load()
	if hello.Pollux == nil {
		return
	}
	for _, d := range hello.Pollux.OpenDiffs {
		if _, shown := s.announced[d.ID]; !shown {
			continue
		}
		if _, open := s.core.Registry.Get(d.ID); !open {
			delete(s.announced, d.ID)
			s.closeDiff(d.ID, review.Withdrawn.String())
			s.say(messageInfo, "the session that proposed the change of %s cannot be reached any more; look for the proposal in the history (h in pollux review)", d.Path)
		}
	}
}

func (s *Server) didChangeDiff(params json.RawMessage) (any, error) {
	var p struct {
		ID      string          `json:"diffId"`
		Version int             `json:"version"`
		Content json.RawMessage `json:"content"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	content, err := exact(p.Content)
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%s: %v", p.ID, err)
	}
	s.mu.Lock()
	v := s.views[p.ID]
	old := v == nil || p.Version < v.version
	if !old {
		v.version = p.Version
	}
	s.mu.Unlock()
	if old {
		return nil, nil
	}
	if err := s.core.Registry.Edit(p.ID, content); err != nil && !errors.Is(err, review.ErrSettled) {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%s: %v", p.ID, err)
	}
	return nil, nil
}

// diffResolved takes the user's decision. The editor has closed its view
// already; a decision that cannot be taken opens it again.
func (s *Server) diffResolved(params json.RawMessage) (any, error) {
	var p struct {
		ID      string          `json:"diffId"`
		Outcome string          `json:"outcome"`
		Content json.RawMessage `json:"content"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	v := s.drop(p.ID)
	if v == nil {
		return nil, nil // the agent was quicker
	}
	if p.Outcome != "accepted" {
		return nil, ignoreSettled(s.core.Registry.Reject(p.ID))
	}
	var content *string
	if len(p.Content) > 0 && string(p.Content) != "null" {
		text, err := exact(p.Content)
		if err != nil {
			s.again(v, err)
			return nil, nil
		}
		content = &text
	}
	if err := ignoreSettled(s.core.Registry.Accept(p.ID, content)); err != nil {
		s.again(v, err)
	}
	return nil, nil
}

func ignoreSettled(err error) error {
	if errors.Is(err, review.ErrSettled) {
		return nil
	}
	return err
}

// again opens a diff once more whose acceptance failed.
func (s *Server) again(v *view, reason error) {
	s.complain("%s is still open: %v", filepath.Base(v.diff.Proposal().Path), reason)
	s.mu.Lock()
	s.views[v.diff.ID()] = v
	s.mu.Unlock()
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, 2*s.o.OpenWithin)
		defer cancel()
		err := s.openDiff(ctx, v.diff, true)
		if err != nil {
			err = s.showAside(ctx, v)
		}
		if err != nil {
			_ = s.core.Registry.Reject(v.diff.ID())
		}
	})
}

// question asks in the editor for a decision, where the client has the means;
// nothing waits for the answer.
func (s *Server) question(v *view) bool {
	h := s.hello.Load()
	if h == nil || h.Pollux != nil || !h.messages {
		return false
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	v.forget = cancel
	s.mu.Unlock()
	s.tasks.Go(func() {
		defer cancel()
		var out *struct {
			Title string `json:"title"`
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return
		}
		const accept, reject = "Accept", "Reject"
		err := s.peer.Call(ctx, "window/showMessageRequest", obj{
			"type": messageInfo, "message": fmt.Sprintf("%s: take this change?", v.diff.Proposal().Title),
			"actions": []obj{{"title": accept}, {"title": reject}},
		}, &out)
		switch {
		case err != nil || out == nil:
		case out.Title == accept:
			if err := ignoreSettled(s.core.Registry.Accept(v.diff.ID(), nil)); err != nil {
				s.complain("%v", err)
			}
		case out.Title == reject:
			_ = s.core.Registry.Reject(v.diff.ID())
		}
	})
	return true
}
