package gemini

import (
	"encoding/json"
	"slices"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// Unheard is what one session's CLI has not been sent, because its stream is
// down just now. A companion that comes back after this one has ended or
// crashed brings it (SPEC T-6, L-1): without its outcomes the CLI would wait for good.
type Unheard struct {
	Session string `json:"session"` // SessionID of the session
	// Life and Seq go on counting the session's event ids where they were, so
	// that its Last-Event-ID still says what it has heard.
	Life     string          `json:"life"`
	Seq      uint64          `json:"seq"`
	Outcomes []UnheardResult `json:"outcomes"` // in order
}

// An UnheardResult is one notification of an Unheard.
type UnheardResult struct {
	Seq  uint64 `json:"seq"`
	Path string `json:"path"` // as the CLI spelled it
	// Message is the notification as it goes out. With Accepted it is an
	// acceptance of Content.
	Message  json.RawMessage `json:"message"`
	Accepted bool            `json:"accepted,omitempty"`
	Content  string          `json:"content,omitempty"`
}

// Unheard is what waits now for streams that are down, and after Shutdown what
// was still waiting then: what is to be handed to Bring of the next server.
// Options.Waiting says when it may have changed.
func (s *Server) Unheard() []Unheard {
	var all []Unheard
	for _, sess := range s.live() {
		sess.mu.Lock()
		if u := sess.waiting(); len(u.Outcomes) > 0 {
			all = append(all, u)
		}
		sess.mu.Unlock()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append(all, s.unheard...)
}

// Bring adopts a session of an earlier life with what it has not heard; false
// when its id is not this companion's own. It is called before Serve.
func (s *Server) Bring(u Unheard) bool {
	sess := s.find(u.Session)
	if sess == nil {
		return false
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.life, sess.seq, sess.waits = u.Life, u.Seq, true
	for _, r := range u.Outcomes {
		is := review.Outcome{Kind: review.Rejected}
		if r.Accepted {
			is = review.Outcome{Kind: review.Accepted, Content: r.Content}
		}
		sess.outcomes = append(sess.outcomes, &outcome{path: r.Path, is: is, seq: r.Seq, frame: newFrame(r.Message)})
	}
	return true
}

// unheard says whether the streams have not taken the outcome whole. The caller
// holds the session's mu.
func (o *outcome) unheard() bool {
	return o.via == nil || o.via.ended && !o.via.clean
}

// waiting is what the session's streams did not take. The caller holds s.mu.
func (s *session) waiting() Unheard {
	u := Unheard{Session: s.id, Life: s.life, Seq: s.seq}
	for _, o := range s.outcomes {
		if o.unheard() {
			u.Outcomes = append(u.Outcomes, UnheardResult{
				Seq: o.seq, Path: o.path, Message: o.frame.json(), Accepted: o.is.Kind == review.Accepted, Content: o.is.Content,
			})
		}
	}
	return u
}

// noteWaiting tells Options.Waiting when an outcome has begun to wait for a
// stream, or those that waited may not any more. The caller holds s.mu.
func (s *session) noteWaiting() {
	waits := slices.ContainsFunc(s.outcomes, (*outcome).unheard)
	if (waits || s.waits) && s.server.o.Waiting != nil {
		s.server.o.Waiting()
	}
	s.waits = waits
}

// keepUnheard notes, at the end of Shutdown, what the session's streams did not take.
func (s *session) keepUnheard() {
	s.mu.Lock()
	u := s.waiting()
	s.outcomes = nil
	s.mu.Unlock()
	if len(u.Outcomes) == 0 {
		return
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.unheard = append(s.server.unheard, u)
}
