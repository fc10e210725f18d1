package mcp

import (
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// For tests outside this package. They need a dialect, and a real agent's dialect imports this package.

// MaxProcesses is maxProcesses.
const MaxProcesses = maxProcesses

// MaxOld is maxOld.
const MaxOld = maxOld

// MaxStreams is maxStreams.
const MaxStreams = maxStreams

// SessionID returns the id that Adopt takes for the owner of a diff; "" when the owner is no session of this package.
func SessionID(owner review.Owner) string {
	if sess, ok := owner.(*Session); ok {
		return sess.id
	}
	return ""
}

// SessionHeader is sessionHeader.
const SessionHeader = sessionHeader

// NewSessionID is newSessionID.
func NewSessionID(key []byte, number int) string { return newSessionID(key, birth{number: number}) }

// DeletedIDs is deletedIDs.
const DeletedIDs = deletedIDs

// Event is a message as an event stream has it.
func Event(json []byte) []byte { return newFrame(json).sse() }

// Beats says whether keep-alives are sent.
func (s *Server) Beats() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.beating != nil
}

// Told counts the outcomes that the sessions were told in this life.
func (s *Server) Told() (n uint64) {
	for _, sess := range s.live() {
		sess.mu.Lock()
		n += sess.seq
		sess.mu.Unlock()
	}
	return n
}

// Waiting counts the outcomes that a session has not confirmed.
func (s *Server) Waiting(id string) int {
	sess := s.earlier(id)
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return len(sess.outcomes)
}

// Streams counts a session's.
func (s *Server) Streams(id string) int {
	sess := s.earlier(id)
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return len(sess.streams)
}

// Untimed says that no timer wakes for a session.
func (s *Server) Untimed(id string) bool {
	sess := s.earlier(id)
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return sess.untimed
}

// Session returns the session with an id.
func (s *Server) Session(id string) *Session { return s.earlier(id) }

// Publish hands a snapshot to the sessions, as the store does.
func (s *Server) Publish(snap *state.Snapshot) { s.publish(snap) }

// EndSessions is what Shutdown does before it stops listening.
func (s *Server) EndSessions() {
	s.closing.Store(true)
	for _, sess := range s.live() {
		sess.end()
	}
}

// Closing says whether Shutdown has begun.
func (s *Server) Closing() bool { return s.closing.Load() }
