package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/paths"
)

// A view is one diff that this process shows, from Show to Close.
type view struct {
	diff   *review.Diff
	editor bool // the editor shows it; otherwise only the page does
	edit   int  // the number of the editor's last edit that the registry has
	// seen names the version that the editor was shown, or made of it since. For a plugin of
	// version 2 it is the version that it was told; own and from are its last edit's version
	// here, and the version that it had edited.
	seen      review.Seen
	own, from int
	texts     review.Shown     // texts that the editor may have edited
	conflict  *review.Conflict // the conflict that it was told last
	// again: the last two messages to the editor carried the same version.
	// crossed: the last message may have met an edit on the way; then the plugin has ignored it.
	again, crossed bool
	// ahead is by how much the editor counts more bases than the registry; see baseFrom.
	ahead   int
	syncing bool // a goroutine is bringing it up to date
	holds   int  // how many callers are changing it; the last one brings it up to date
	tooBig  bool // its text is too big to accept, and the user knows
	decides bool // the editor has decided it, or is trying to, and closes it by itself
	// forget ends the question that asks for a decision; nil when there is none.
	forget context.CancelFunc
}

// Show implements review.View. It shows the diff in the editor if that can, otherwise on the page.
func (s *Server) Show(ctx context.Context, d *review.Diff) error {
	if s.takeUp(d) {
		return nil
	}
	if _, over := d.Outcome(); over { // the agent took it back just before
		return review.ErrSettled
	}
	v := &view{diff: d, editor: s.diffs()}
	s.mu.Lock()
	s.views[d.ID()] = v
	s.mu.Unlock()
	if v.editor {
		err := s.openDiff(ctx, v, true)
		s.mu.Lock()
		decides := v.decides
		s.mu.Unlock()
		if err == nil || decides {
			return nil
		}
		s.log.Info("the editor does not show a diff", "err", err)
		s.closeDiff(d.ID(), "") // the editor may still open it
		if _, over := d.Outcome(); over {
			s.drop(d.ID())
			return review.ErrSettled
		}
	}
	return s.showAside(ctx, v)
}

// showAside shows a diff on the page, and asks in the editor as far as the editor can be asked.
func (s *Server) showAside(ctx context.Context, v *view) error {
	s.mu.Lock()
	v.editor = false
	s.mu.Unlock()
	err := s.core.Page.Show(ctx, v.diff)
	asks := s.question(v)
	switch {
	case err == nil:
		s.say(messageInfo, "%s waits for you in pollux's editor page, and in a terminal where you run: pollux review", v.diff.Proposal().Title)
	case asks:
		s.complain("only accept or reject can be chosen here: %v", err)
	default:
		s.drop(v.diff.ID())
		s.complain("a diff cannot be shown: %v", err)
		return err
	}
	return nil
}

// openDiff has the editor show v's diff as it is now, in place of an older view of it.
func (s *Server) openDiff(ctx context.Context, v *view, takeFocus bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.OpenWithin)
	defer cancel()
	select {
	case <-s.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	d := v.diff
	p, now := d.Proposal(), d.Now()
	s.mu.Lock() // before the call: the first edit may come before the answer
	v.holds++
	v.seen, v.edit, v.conflict, v.again, v.crossed, v.decides = now.Seen, 0, now.Conflict, false, false, false
	v.seen.By = s
	v.own, v.from = now.Seen.Text, now.Seen.Text
	v.texts.Edited(now.Seen.Text, now.Text)
	s.mu.Unlock()
	defer s.release(v)
	newText := largeText{name: "newText", text: now.Text}
	if now.Text == p.New {
		newText.sent = d.JSON()
	}
	var out struct {
		Opened         *bool `json:"opened"`
		BufferModified bool  `json:"bufferModified"`
	}
	err := s.peer.Call(ctx, "pollux/openDiff", withTexts(obj{
		"diffId": d.ID(), "filePath": p.Path, "uri": paths.URI(p.Path), "isNewFile": !now.Base.Exists, "title": p.Title, "takeFocus": takeFocus,
		"version": now.Seen.Text, "baseVersion": now.Seen.Base, "conflict": conflictOf(now), "others": now.Others,
		"readOnly": p.ReadOnly,
	}, largeText{name: "oldText", text: now.Base.Text}, newText), &out)
	switch {
	case err != nil:
		return err
	case out.Opened == nil || !*out.Opened: // some clients answer null to methods that they do not know
		return errors.New("the editor did not say that it opened the diff")
	}
	s.mu.Lock()
	over := s.views[d.ID()] != v && !v.decides // a decision is told when it is written down
	s.mu.Unlock()
	if over { // it ended before the editor had it
		s.closeDiff(d.ID(), "")
	}
	return nil
}

// Close implements review.View.
func (s *Server) Close(d *review.Diff, o review.Outcome) {
	s.core.Page.Close(d, o)
	if s.forget(d.ID()) != nil {
		s.closeDiff(d.ID(), o.Kind.String())
		return
	}
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

// Content implements review.View. The agent takes the diff back, so the editor closes its
// view and answers with the newest text.
func (s *Server) Content(ctx context.Context, d *review.Diff) (newest review.Edit, ok bool) {
	s.mu.Lock()
	v := s.views[d.ID()]
	if v != nil && v.editor {
		delete(s.views, d.ID())
	}
	s.mu.Unlock()
	if v == nil || !v.editor {
		return s.core.Page.Content(ctx, d)
	}
	newest, ok = s.takeBack(ctx, d.ID())
	at, was := s.textOf(v, newest.From)
	newest.From, newest.Was, newest.By = &at, was, s
	return newest, ok
}

// takeBack closes a view in the editor and returns its text. The text's From is the version that the plugin names.
func (s *Server) takeBack(ctx context.Context, id string) (had review.Edit, ok bool) {
	var out struct {
		Content json.RawMessage `json:"content"`
		Version *int            `json:"version"`
	}
	var raw json.RawMessage
	err := s.peer.Call(ctx, "pollux/closeDiff", obj{"diffId": id}, &raw)
	if err == nil {
		err = decodeText(raw, &out, &out.Content)
	}
	if err != nil {
		s.log.Info("the editor did not say its text of a diff", "err", err)
		return had, false
	}
	content, err := exact(out.Content)
	return review.Edit{Text: content, From: out.Version}, err == nil
}

// drop forgets a view and returns it; nil when there is none.
func (s *Server) drop(id string) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[id]
	delete(s.views, id)
	return v
}

// decides is drop for a view that the editor is deciding.
func (s *Server) decides(id string) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[id]
	if v != nil {
		v.decides = true
	}
	delete(s.views, id)
	return v
}

// closeDiff closes a view in the editor, which hears of it before anything that is said later: the next proposal of that file must not
// come up behind this one. A goroutine of its own waits for the answer, which is ignored.
func (s *Server) closeDiff(id, outcome string) {
	params := obj{"diffId": id}
	if outcome != "" {
		params["outcome"] = outcome
	}
	call := func(ctx context.Context) error {
		return s.peer.Call(ctx, "pollux/closeDiff", params, nil)
	}
	select {
	case <-s.ready:
		wait := s.peer.Begin("pollux/closeDiff", params)
		call = func(ctx context.Context) error { return wait(ctx, nil) }
	default: // nothing was said to the editor yet
	}
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.o.OpenWithin)
		defer cancel()
		select {
		case <-s.ready:
			_ = call(ctx)
		case <-ctx.Done():
		}
	})
}

// question asks in the editor for a decision, where the client can show a question;
// nothing waits for the answer.
func (s *Server) question(v *view) bool {
	h := s.hello.Load()
	if h == nil || h.Pollux != nil || !h.messages {
		return false
	}
	ctx, cancel := context.WithCancel(s.ctx)
	seen := v.diff.Now().Seen
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
			if err := ignoreSettled(s.core.Registry.Accept(v.diff.ID(), seen, nil)); err != nil {
				s.complain("%s is still open: %v", v.diff.Proposal().Title, err)
				s.question(v)
			}
		case out.Title == reject:
			_ = s.core.Registry.Reject(v.diff.ID())
		}
	})
	return true
}
