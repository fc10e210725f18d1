package mcp

import (
	"cmp"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// A Journal keeps what a companion that comes back after this one was killed must know (SPEC L-3, T-6). The server
// tells it of each step before it tells anybody else, with locks held: a call returns when the step is
// written, and calls nothing of the Server.
type Journal interface {
	// Opened: the session is about to be told that d is open.
	Opened(session string, d *review.Diff)
	// Decided: the session is about to be told how the diff of that id ended, by an event of that life and number. content is
	// the final text of one that was accepted, else nil.
	Decided(id string, content *string, as, life string, seq uint64)
	// Heard: the session has had the outcomes of these numbers.
	Heard(session string, seqs ...uint64)
	// Dropped: the session has taken back its diff of that key, or will hear no more of it.
	Dropped(session, key string)
	// Forget: the session will not be told how that diff ended.
	Forget(id string)
	// Ended: the session has ended; with good false its id is not good any more.
	Ended(session string, good bool)
}

// Unheard is what one session's CLI may not have heard before this companion's life.
// Without its outcomes it would wait for good.
type Unheard struct {
	Session string // SessionID of the session
	// Life and Seq, of the newest event there was, go on numbering the session's events where they were, so
	// that its Last-Event-ID still says what it has heard.
	Life     string
	Seq      uint64
	Outcomes []UnheardOutcome // in any order
}

// An UnheardOutcome is one notification of an Unheard.
type UnheardOutcome struct {
	Seq     uint64
	ID      string // the diff's
	Path    string // as the CLI spelled it
	As      string // as Journal.Decided was told
	Content string // for all but a rejection
}

// Bring adopts a session of an earlier life with what it may not have heard; false
// when its id is not this companion's own. It is called before Options.Ready is closed.
func (s *Server) Bring(u Unheard) bool {
	sess := s.earlier(u.Session)
	if sess == nil {
		return false
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.life, sess.seq = u.Life, u.Seq
	// By their numbers: what a CLI has heard is told by the last of them.
	for _, o := range slices.SortedFunc(slices.Values(u.Outcomes), func(a, b UnheardOutcome) int { return cmp.Compare(a.Seq, b.Seq) }) {
		sess.seq = max(sess.seq, o.Seq)
		sess.queue(&outcome{id: o.ID, path: o.Path, as: o.As, content: o.Content, seq: o.Seq})
	}
	return true
}

// unheard says whether the streams have not taken the outcome whole. The caller
// holds the session's mu.
func (o *outcome) unheard() bool {
	return o.via == nil || o.via.stage == broken
}

// waits says whether there is an outcome that no stream has taken.
func (s *Session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.outcomes, (*outcome).unheard)
}

// The ways in which a dialect tells an outcome; it may have others.
const (
	// Accepted has the final text.
	Accepted = "accepted"
	// Rejected has none.
	Rejected = "rejected"
)

// heard notes the outcomes that need not be kept any more. The caller holds s.mu.
func (s *Session) heard(outcomes []*outcome) {
	if s.server.o.Journal == nil || len(outcomes) == 0 {
		return
	}
	seqs := make([]uint64, len(outcomes))
	for i, o := range outcomes {
		seqs[i] = o.seq
	}
	s.server.o.Journal.Heard(s.id, seqs...)
}

// letGo takes outcomes out of the queue. The caller holds s.mu.
func (s *Session) letGo(which func(*outcome) bool) (gone []*outcome) {
	var left []*outcome
	for _, o := range s.outcomes {
		if which(o) {
			s.server.o.Registry.Hold(-len(o.content))
			gone = append(gone, o)
		} else {
			left = append(left, o)
		}
	}
	s.outcomes = left
	return gone
}

// keepUnheard notes, at the end of Shutdown, what the session's streams took; the rest waits for the next companion.
func (s *Session) keepUnheard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard(s.letGo(func(o *outcome) bool { return !o.unheard() }))
}
