package lsp

import (
	"context"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// heard takes the registry's events, whoever caused them.
func (s *Server) heard(e review.Event) {
	if e.Kind == review.Opened || e.Kind == review.Decided {
		poke(s.wake) // the status counts open diffs
	}
	if o := e.Outcome; o != nil && o.Policy && o.Kind == review.Accepted {
		s.acceptedByRule(filepath.Base(e.Diff.Proposal().Path))
	}
	if e.Kind != review.Edited && e.Kind != review.Rebased || e.Kind == review.Edited && e.By == s {
		return
	}
	s.mu.Lock()
	v := s.views[e.Diff.ID()]
	s.mu.Unlock()
	if v != nil {
		s.refresh(v)
	}
}

// acceptedByRule tells the user what a rule has accepted: one message for all changes that come together.
func (s *Server) acceptedByRule(name string) {
	s.mu.Lock()
	s.byRule = append(s.byRule, name)
	first := len(s.byRule) == 1
	s.mu.Unlock()
	if !first || !s.Full() {
		return
	}
	s.tasks.Go(func() {
		select {
		case <-time.After(ruleEvery):
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		names := s.byRule
		s.byRule = nil
		s.mu.Unlock()
		if len(names) == 1 {
			s.say(messageInfo, "%s: accepted by your rule", names[0])
			return
		}
		s.say(messageInfo, "%d changes accepted by your rule, the last one of %s", len(names), names[len(names)-1])
	})
}

// refresh brings the editor's view of a diff up to date, on a goroutine of its own.
func (s *Server) refresh(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !v.editor || v.syncing || v.holds > 0 || !s.behind(v) {
		return
	}
	v.syncing = true
	s.tasks.Go(func() { s.sync(v) })
}

// release ends a hold on a view, and brings the view up to date.
func (s *Server) release(v *view) {
	s.mu.Lock()
	v.holds--
	s.mu.Unlock()
	s.refresh(v)
}

// behind says whether the editor shows something older than the newest. The caller holds s.mu.
func (s *Server) behind(v *view) bool {
	if v.crossed {
		return s.views[v.diff.ID()] == v
	}
	now := v.diff.Now()
	newer := now.Seen.Base != v.seen.Base || now.Seen.Text != max(v.seen.Text, v.own)
	ended := now.Conflict != v.conflict && s.hello.Load().Pollux.Version >= 2
	return s.views[v.diff.ID()] == v && (newer || ended)
}

// sync sends the editor what is new, until it has the newest.
func (s *Server) sync(v *view) {
	for failed := false; ; {
		s.mu.Lock()
		if failed || s.ctx.Err() != nil || v.holds > 0 || !s.behind(v) {
			v.syncing = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if s.hello.Load().Pollux.Version >= 2 {
			s.tellNewer(v)
		} else {
			failed = !s.showNewer(v)
		}
	}
}

// tellNewer sends a plugin of version 2 the newer text or file.
func (s *Server) tellNewer(v *view) {
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	now, before, edit := v.diff.Now(), v.seen, v.edit
	rebased := now.Seen.Base != before.Base || v.crossed // the plugin may have ignored the message about the file
	v.again, v.crossed = now.Seen.Text == before.Text, false
	v.conflict = now.Conflict
	v.seen = now.Seen // an edit that the plugin makes meanwhile still starts from v.from
	v.texts.Told(now)
	s.mu.Unlock()
	id := v.diff.ID()
	if rebased {
		s.peer.Notify("pollux/didChangeBase", withTexts(obj{
			"diffId": id, "baseVersion": now.Seen.Base + v.ahead, "isNewFile": !now.Base.Exists,
			"version": now.Seen.Text, "conflict": conflictOf(now), "others": now.Others, "edit": edit,
		}, largeText{name: "oldText", text: now.Base.Text}, largeText{name: "content", text: now.Text}))
		return
	}
	s.peer.Notify("pollux/didChangeProposal", withTexts(obj{
		"diffId": id, "version": now.Seen.Text, "conflict": conflictOf(now), "edit": edit,
	}, largeText{name: "content", text: now.Text}))
}

// showNewer shows a diff anew in an editor with a plugin of version 1. It first fetches
// what the user has typed there and the plugin has not sent yet.
func (s *Server) showNewer(v *view) bool {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.o.OpenWithin)
	defer cancel()
	had, ok := s.takeBack(ctx, v.diff.ID())
	s.mu.Lock()
	there := s.views[v.diff.ID()] == v
	s.mu.Unlock()
	if !there {
		return true // decided meanwhile
	}
	if ok {
		if err := s.edited(v, nil, 0, had.Text); err != nil {
			s.complain("an edit could not be kept: %v", err)
		}
	}
	if err := s.openDiff(ctx, v, false); err != nil {
		s.log.Info("the editor does not show what is newer", "err", err)
		return s.showAside(ctx, v) == nil
	}
	name, now := filepath.Base(v.diff.Proposal().Path), v.diff.Now()
	switch {
	case now.Conflict != nil:
		s.say(messageInfo, "%s: %s", name, now.Conflict.Reason)
	default:
		s.say(messageInfo, "%s: the proposal or its file was changed elsewhere; this is the newest", name)
	}
	return true
}

// conflictOf encodes a conflict for the wire; nil without one.
func conflictOf(now review.State) any {
	if now.Conflict == nil {
		return nil
	}
	places := []obj{}
	for _, c := range now.Conflict.Places {
		places = append(places, obj{"start": c.Start, "end": c.End, "text": c.Theirs})
	}
	return obj{"reason": now.Conflict.Reason, "places": places}
}
