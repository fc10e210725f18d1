package mcp

import "errors"

// A Mention is a place that the user points an agent at.
type Mention struct {
	Path string // absolute, UTF-8
	// First and Last are lines from 1; 0 for the whole file, or a folder.
	First, Last int
	// Text is what stands in these lines; "" where it is not known.
	Text string
}

// A Mentioner is a Dialect whose agent takes mentions into its prompt.
type Mentioner interface {
	// Mention is the notification of one; nil where the agent has no word for it.
	Mention(Mention) []byte
}

var (
	// ErrNoMention: the agent has no word for a mention.
	ErrNoMention = errors.New("this agent's protocol has no mentions")
	// ErrNoSession: there is no such session, or nobody listens there.
	ErrNoSession = errors.New("the session has ended, or does not listen")
)

// maxNotes bounds the mentions that wait for a slow peer.
const maxNotes = 16

// Mention puts a mention into the prompt of a session, by its number. It returns when the mention is on its way.
func (s *Server) Mention(session int, m Mention) error {
	for _, sess := range s.live() {
		if sess.number != session {
			continue
		}
		to, ok := sess.agent.Dialect.(Mentioner)
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

// note sends a notification once, on the newest stream.
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
