package mcp

import "errors"

// A Mention is a place that the user points an agent at.
type Mention struct {
	Path string // absolute, UTF-8
	// First and Last are the first and last line, 1-based; 0 for the whole file, or a folder.
	First, Last int
	// Text is the text of these lines; "" when it is not known.
	Text string
}

// A mentioner is a Dialect whose agent takes mentions into its prompt.
type mentioner interface {
	// Mention returns the notification of a mention; nil when the agent has none for it.
	Mention(Mention) []byte
}

var (
	// ErrNoMention: the agent's protocol cannot express the mention.
	ErrNoMention = errors.New("this agent's protocol has no mentions")
	// ErrNoSession: the session does not exist, or has no stream.
	ErrNoSession = errors.New("the session has ended, or does not listen")
)

// maxNotes bounds the mentions that wait for a slow peer.
const maxNotes = 16

// Mention puts a mention into the prompt of a session, by the session's number. It returns when the mention is on its way.
func (s *Server) Mention(session int, m Mention) error {
	for _, sess := range s.live() {
		if sess.number != session {
			continue
		}
		to, ok := sess.agent.Dialect.(mentioner)
		if !ok {
			return ErrNoMention
		}
		note := to.Mention(m)
		if note == nil {
			return ErrNoMention
		}
		return sess.note(newFrame(note))
	}
	return ErrNoSession
}

// note sends a notification, on the newest stream only. It is not repeated after a reconnection.
func (s *Session) note(f *frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || len(s.streams) == 0 {
		return ErrNoSession
	}
	st := s.streams[len(s.streams)-1]
	if st.over() || len(st.notes) >= maxNotes {
		return ErrNoSession
	}
	st.notes = append(st.notes, f)
	st.kick()
	return nil
}
