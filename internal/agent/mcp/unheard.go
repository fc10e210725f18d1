package mcp

import (
	"cmp"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// A Journal keeps what the next companion must know when this one is killed (SPEC L-3, T-6). The server
// calls it before it tells anybody else of a step, with locks held. A call returns when the step is
// written, and must not call the Server.
type Journal interface {
	// Opened: the session is about to be told that d is open.
	Opened(session string, d *review.Diff)
	// Decided: the session is about to be told how the diff with that id ended, by the event of that life and number. content is
	// the final text of an accepted diff, otherwise nil.
	Decided(id string, content *string, as, life string, seq uint64)
	// Heard: the session has heard the outcomes with these numbers.
	Heard(session string, seqs ...uint64)
	// Dropped: the session has taken back its diff of that key, or will hear no more of it.
	Dropped(session, key string)
	// Forget: the session will not be told how that diff ended.
	Forget(id string)
	// Ended: the session has ended; with good false, its id is invalid from now on.
	Ended(session string, good bool)
}

// Unheard holds the outcomes that one session's CLI may not have heard before this life.
// Without them the CLI would wait for ever.
type Unheard struct {
	Session string // SessionID of the session
	// Life and Seq are of the session's newest event. Its events go on counting from there,
	// so that its Last-Event-ID still says what it has heard.
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
	Content string // the final text; not used for a rejection
}

// Bring adopts a session of an earlier life with the outcomes that it may not have
// heard. It returns false when the id is not this companion's own. Call it before
// Options.Ready is closed.
func (s *Server) Bring(u Unheard) bool {
	sess := s.earlier(u.Session)
	if sess == nil {
		return false
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.life, sess.seq = u.Life, u.Seq
	// In the order of their numbers: a CLI confirms outcomes by the last one.
	for _, o := range slices.SortedFunc(slices.Values(u.Outcomes), func(a, b UnheardOutcome) int { return cmp.Compare(a.Seq, b.Seq) }) {
		sess.seq = max(sess.seq, o.Seq)
		sess.queue(&outcome{id: o.ID, path: o.Path, as: o.As, content: o.Content, seq: o.Seq, brought: true})
	}
	return true
}

// unheard says whether no stream has taken the outcome whole. The caller holds the
// session's mu.
func (o *outcome) unheard() bool {
	return o.via == nil || o.via.state == broken
}

// waits says whether some outcome was taken by no stream.
func (s *Session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.outcomes, (*outcome).unheard)
}

// The usual names of a dialect's outcomes; a dialect may have others.
const (
	// Accepted comes with the final text.
	Accepted = "accepted"
	// Rejected comes without a text.
	Rejected = "rejected"
)

// heard tells the journal which outcomes need not be kept any more. The caller holds s.mu.
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

// letGo takes outcomes out of the queue, and releases their memory in the registry's count. Nothing else takes any out, so
// the count stays right. The caller decides what the journal is told: heard, or dropped. The caller holds s.mu.
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

// keepUnheard tells the journal, at the end of Shutdown, which outcomes the streams took. The others wait for the next companion.
func (s *Session) keepUnheard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard(s.letGo(func(o *outcome) bool { return !o.unheard() }))
}
