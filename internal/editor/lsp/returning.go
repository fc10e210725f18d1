package lsp

import (
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// An announced is a view that the editor has shown since before this process (SPEC L-3), until its diff is open again or is
// known not to come back.
type announced struct {
	text  string        // as the editor has said last; guarded by Server.mu
	edit  int           // its number, 0 for that of the announcement; likewise
	shown *string       // what the editor was told last, before the user's edits; nil where that is not known
	old   *string       // the file beside it; likewise
	known chan struct{} // closed then
}

// StillShown is the text of a view that the editor has shown since before this process, by its diff's
// id; not ok once the diff is open again, or known to be none.
func (s *Server) StillShown(id string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.announced[id]
	if !ok {
		return "", false
	}
	return a.text, true
}

// takeUp goes on with a view that the editor shows already. Nobody else finds the view before its diff has the editor's text, so
// that what the user types meanwhile does not come before what was there.
func (s *Server) takeUp(d *review.Diff) bool {
	v := &view{diff: d, editor: s.diffs(), seen: review.Seen{Text: review.Restored, By: s}, own: review.Restored, from: review.Restored}
	var from *int // what a plugin of version 2 calls it
	if h := s.hello.Load(); h != nil && h.Pollux != nil && h.Pollux.Version >= 2 {
		at := review.Restored
		from = &at
	}
	for said, first := "", true; ; first = false {
		s.mu.Lock()
		a := s.announced[d.ID()]
		if a == nil {
			s.mu.Unlock()
			return !first // closed meanwhile
		}
		if !first && a.text == said {
			v.edit = max(v.edit, a.edit)
			v.baseFrom(a.old)
			s.views[d.ID()] = v
			delete(s.announced, d.ID())
			close(a.known)
			s.mu.Unlock()
			s.refresh(v)
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

// baseFrom counts the bases of a view from the one that the editor has shown since before, nil where that is not known. It may
// be none of this companion's: then the first one is still to be told. The caller holds Server.mu.
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

// forget ends the wait for a diff to be open again, and says whether there was one.
func (s *Server) forget(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.announced[id]
	if a == nil {
		return false
	}
	delete(s.announced, id)
	close(a.known)
	return true
}

// viewOf finds a view that the editor speaks of. While the diff of one that it has announced is not open again, viewOf waits for
// it: a decision must not get lost. It fails only at the end of the server.
func (s *Server) viewOf(id string) (*view, error) {
	s.mu.Lock()
	a := s.announced[id]
	s.mu.Unlock()
	if a != nil {
		select {
		case <-a.known:
		case <-s.ctx.Done():
			return nil, rpc.Errorf(codeStale, "pollux ends before the diff is open again")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.views[id], nil
}

// forgetUnknown closes views that the editor kept from before a crash and
// whose agent cannot be told any more, and says so: the user may have been writing there.
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
		if _, open := s.core.Registry.Get(d.ID); !open && s.forget(d.ID) {
			s.closeDiff(d.ID, review.Withdrawn.String())
			s.say(messageInfo, "the session that proposed the change of %s cannot be reached any more; look for the proposal in the history (h in pollux review)", d.Path)
		}
	}
}
