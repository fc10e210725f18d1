package lsp

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// An announced is a view that the editor has kept since an earlier pollux process (SPEC L-3). It lasts until its diff is open again, or
// is known not to come back.
type announced struct {
	text  string  // the editor's newest text; guarded by Server.mu
	edit  int     // its number, 0 for the announced text; guarded by Server.mu
	shown *string // the text that the editor was told last, before the user's edits; nil when not known
	old   *string // the file's text beside it; nil when not known
	// rejected: the user has rejected it, and the earlier process has not answered that.
	rejected bool
	known    chan struct{} // closed when its diff is open again or given up
}

// StillShown returns the text of a view that the editor has kept since an earlier pollux process, by its diff's id. ok is false
// when there is none, and once the diff is open again or given up.
func (s *Server) StillShown(id string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.announced[id]
	if !ok {
		return "", false
	}
	return a.text, true
}

// takeUp goes on with a view that the editor shows already. The view is found by others only once its diff has the editor's text:
// otherwise an edit that the user makes meanwhile could be recorded before that text.
func (s *Server) takeUp(d *review.Diff) bool {
	v := &view{diff: d, editor: s.diffs(), seen: review.Seen{Text: review.Restored, By: s}, own: review.Restored, from: review.Restored}
	var from *int // what a plugin of version 2 calls this version
	if h := s.hello.Load(); h != nil && h.Pollux != nil && h.Pollux.Version >= 2 {
		at := review.Restored
		from = &at
	}
	for said, first := "", true; ; first = false {
		s.mu.Lock()
		a := s.announced[d.ID()]
		if a == nil {
			s.mu.Unlock()
			return !first // the editor has closed it meanwhile
		}
		if !first && a.text == said {
			v.edit = max(v.edit, a.edit)
			v.baseFrom(a.old)
			s.views[d.ID()] = v
			delete(s.announced, d.ID())
			close(a.known)
			if a.rejected {
				s.rejectLater(d.ID())
			}
			s.mu.Unlock()
			if !a.rejected {
				s.refresh(v)
			}
			return true
		}
		said = a.text
		number, shown := a.edit, a.shown
		s.mu.Unlock()
		if first {
			at := review.Restored
			_ = s.edit(v, from, number, review.Edit{Text: said, From: &at, Was: shown, Unsure: true, By: s})
		} else {
			_ = s.edited(v, from, number, said)
		}
	}
}

// rejectLater rejects a diff in its turn, which settle waits for; the editor hears it by closeDiff. The caller holds Server.mu.
func (s *Server) rejectLater(id string) {
	done := s.turn(id)
	s.tasks.Go(func() {
		defer done()
		_ = s.core.Registry.Reject(id)
	})
}

// baseFrom counts the bases of a view from the one that the editor has shown since before; nil when that one is not known. It may
// be none of this companion's bases: then the first one must still be sent. The caller holds Server.mu.
func (v *view) baseFrom(old *string) {
	if old == nil {
		return
	}
	now := v.diff.Now()
	if text.ToLF(now.Base.Text) == text.ToLF(*old) {
		v.ahead, v.seen.Base = -now.Seen.Base, now.Seen.Base
	} else {
		v.ahead, v.seen.Base = 1, -1
	}
}

// forget ends the wait for a diff to be open again, and returns what the editor has of it; nil when nobody waited for it.
func (s *Server) forget(id string) *announced {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.announced[id]
	if a != nil {
		delete(s.announced, id)
		close(a.known)
	}
	return a
}

// keepUnknown keeps in the history what the user has made of a proposal that was decided meanwhile, or whose agent is gone.
func (s *Server) keepUnknown(path string, a *announced) {
	if s.core.Keep == nil || a.shown == nil || *a.shown == a.text {
		return
	}
	e := history.Entry{New: *a.shown, Final: a.text, Info: history.Info{
		ID: rand.Text(), Path: path, Title: filepath.Base(path) + " (an edit of a proposal that nobody waits for any more)",
		Opened: time.Now(), Settled: time.Now(), Outcome: review.Withdrawn, Edited: true,
	}}
	if a.old != nil {
		e.Old = *a.old
	}
	s.core.Keep(e)
}

// inTurn handles a message about a diff. A decision may wait: on a diff that is coming back, for that, so that it is not lost; on another
// one, until its agent has taken its answer. So it has a goroutine of its own, and what the editor says of the diff after it comes after
// it. Other messages are not held up.
func (s *Server) inTurn(id string, decision bool, handle func() (any, error)) (any, error) {
	s.mu.Lock()
	a, before := s.announced[id], s.turns[id]
	if before == nil && !decision {
		s.mu.Unlock()
		return handle()
	}
	done := s.turn(id)
	s.mu.Unlock()
	return rpc.Later(func() (any, error) {
		defer done()
		all := []<-chan struct{}{before}
		if a != nil {
			all = append(all, a.known)
		}
		for _, c := range all {
			if !s.wait(c, s.ctx.Done()) {
				return nil, rpc.Errorf(codeStale, "pollux ends before the diff is open again")
			}
		}
		return handle()
	}), nil
}

// turn begins a turn of a diff's, and returns what ends it. The caller holds Server.mu.
func (s *Server) turn(id string) (end func()) {
	done := make(chan struct{})
	s.turns[id] = done
	return func() {
		s.mu.Lock()
		if s.turns[id] == done {
			delete(s.turns, id)
		}
		s.mu.Unlock()
		close(done)
	}
}

// wait waits for c, and not at all for nil; false when over comes first.
func (s *Server) wait(c, over <-chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	case <-over:
		return false
	}
}

// settle waits a moment until all that the editor has announced or decided is known to the registry: it may have said so in its last words.
func (s *Server) settle() {
	ctx, cancel := context.WithTimeout(s.ctx, settleWithin)
	defer cancel()
	for {
		s.mu.Lock()
		var next <-chan struct{}
		for _, a := range s.announced {
			next = a.known
		}
		for _, done := range s.turns {
			next = done
		}
		s.mu.Unlock()
		if next == nil || !s.wait(next, ctx.Done()) {
			return
		}
	}
}

// forgetUnknown closes views that the editor kept from before a crash, when their agent cannot be told any more. It tells the user,
// who may have been editing there.
func (s *Server) forgetUnknown() {
	s.mu.Lock()
	none := len(s.announced) == 0
	s.mu.Unlock()
	if none {
		return
	}
	if s.core.Whole != nil {
		s.core.Whole()
	}
	for _, d := range s.hello.Load().Pollux.OpenDiffs {
		if _, open := s.core.Registry.Get(d.ID); open {
			continue
		}
		if a := s.forget(d.ID); a != nil {
			s.keepUnknown(d.Path, a)
			s.closeDiff(d.ID, review.Withdrawn.String())
			if d.Outcome != "" {
				continue // nobody looks at it any more
			}
			s.say(messageInfo, "the session that proposed the change of %s cannot be reached any more; look for the proposal in the history (h in pollux review)", d.Path)
		}
	}
}
