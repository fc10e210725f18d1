package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// An outcome waits in its session's queue until the CLI has confirmed it by a
// Last-Event-ID: written to a socket is not yet read by a CLI (SPEC T-6).
type outcome struct {
	id      string // the diff's
	path    string // as the CLI spelled it
	as      string // Accepted, Rejected, or another word of the dialect's
	content string
	edited  bool
	seq     uint64
	via     *stream // on which it was sent; nil when not yet
	sent    time.Time
}

// tellOutcome writes an outcome down, queues its notification and sends it when it can.
func (s *Session) tellOutcome(d *review.Diff, as string, is review.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, journal := d.Proposal().Key, s.server.o.Journal
	if s.ended || d.Opened().Before(s.closed[path]) {
		if journal != nil {
			journal.Forget(d.ID())
		}
		return
	}
	s.seq++
	if journal != nil {
		var content *string
		if as == Accepted {
			content = &is.Content
		}
		journal.Decided(d.ID(), content, as, s.life, s.seq)
	}
	s.queue(&outcome{id: d.ID(), path: path, as: as, content: is.Content, edited: is.Edited, seq: s.seq})
	s.kick()
}

// queue adds an outcome, whose text counts like those of open diffs until it is let go. The caller holds s.mu.
func (s *Session) queue(o *outcome) {
	s.server.o.Registry.Hold(len(o.content))
	s.outcomes = append(s.outcomes, o)
}

// maxUnheard is how many outcomes may wait for a session that does not listen; then it proposes nothing more.
const maxUnheard = 32

// errDeaf: the outcomes of a session's diffs pile up.
var errDeaf = fmt.Errorf("%d outcomes wait for this session, which has no event stream; open one, then propose this one again", maxUnheard)

// listens says whether the session takes its outcomes.
func (s *Session) listens() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := 0
	for _, o := range s.outcomes {
		if o.unheard() {
			waiting++
		}
	}
	if waiting >= maxUnheard {
		return errDeaf
	}
	return nil
}

// tellContext hands over the newest context; one that was not sent yet is dropped.
func (s *Session) tellContext(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) > 0 {
		st := s.streams[len(s.streams)-1]
		st.context = f
		st.kick()
	}
}

// tellAgain repeats the context for an agent that has just connected: Claude Code drops what comes before its window listens, which
// is a while after its last question, and says nothing when it does.
func (s *Session) tellAgain() {
	if !s.agent.Socket {
		return
	}
	for _, later := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 6 * time.Second} {
		time.AfterFunc(later, func() { s.tellContext(s.agent.context.Load()) }) // nobody hears it once the session has ended
	}
}

// kick sends on the newest stream what waits. The caller holds s.mu.
func (s *Session) kick() {
	if len(s.streams) > 0 {
		s.streams[len(s.streams)-1].kick()
	}
}

// forget drops the outcomes of a file that are still on their way, and those
// of its diffs that are just being settled: the CLI has taken that diff back, or
// proposes anew, and an outcome that came now would settle the wrong one (SPEC
// F-4). It returns the newest that was an acceptance which the CLI has not
// heard of: the user was quicker, and the text should still reach it.
func (s *Session) forget(path string) (accepted review.Outcome, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.closed) >= maxClosed {
		clear(s.closed) // of long ago, all but a few
	}
	s.closed[path] = time.Now()
	s.letGo(func(o *outcome) bool {
		if unheard := o.via == nil || o.via.over(); o.path == path && unheard && o.as == Accepted {
			accepted, ok = review.Outcome{Kind: review.Accepted, Content: o.content, Edited: o.edited}, true
		}
		return o.path == path
	})
	if s.server.o.Journal != nil {
		s.server.o.Journal.Dropped(s.id, path)
	}
	return accepted, ok
}

// maxClosed bounds the paths that forget remembers; a peer chooses them.
const maxClosed = 256

// beat sends a keep-alive on each stream that was silent since the last one,
// and drops outcomes that nobody will ask for again.
func (s *Session) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		st.beat()
		st.kick()
	}
	s.trim(time.Now())
}

// trim bounds the outcomes that are kept although they were sent. The caller holds s.mu.
func (s *Session) trim(now time.Time) {
	sent, size := 0, 0
	for _, o := range s.outcomes {
		if o.via != nil {
			sent, size = sent+1, size+len(o.content)
		}
	}
	s.heard(s.letGo(func(o *outcome) bool {
		if o.via == nil || sent <= keptSent && size <= keptBytes && now.Sub(o.sent) < keptFor {
			return false
		}
		sent, size = sent-1, size-len(o.content)
		return true
	}))
}

// eventID says how far a stream is: every outcome up to seq was sent before.
func (s *Session) eventID(seq uint64) string {
	return s.life + "-" + strconv.FormatUint(seq, 10)
}

// resume prepares the queue for a new stream of a client that has read up to
// lastEventID. Without one, or with one of another life, it has read nothing of
// what a stream that has ended was to bring. The caller holds s.mu.
func (s *Session) resume(lastEventID string) {
	life, number, _ := strings.Cut(lastEventID, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	known := err == nil && life == s.life && seq <= s.seq
	if known {
		s.heard(s.letGo(func(o *outcome) bool { return o.seq <= seq }))
	}
	for _, o := range s.outcomes {
		if known || o.via != nil && o.via.over() {
			o.via = nil
		}
	}
}

// greeting is what a stream begins with: when to come back, and the newest
// context with the id of what came before it (SPEC T-7). The caller holds s.mu.
func (s *Session) greeting() []byte {
	before := s.seq
	for _, o := range s.outcomes {
		if o.via == nil {
			before = o.seq - 1
			break
		}
	}
	return fmt.Appendf(nil, "retry: %d\nid: %s\n%s", s.server.o.Retry.Milliseconds(), s.eventID(before), s.agent.context.Load().sse())
}

// attach makes st the session's newest stream and starts it with a head of
// its own; false when the session has ended.
func (s *Session) attach(st *stream, head []byte, lastEventID string) bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	s.resume(lastEventID)
	var oldest *stream
	if len(s.streams) == MaxStreams {
		oldest = s.streams[0]
		s.streams = slices.Delete(s.streams, 0, 1)
		oldest.move(broken)
	}
	s.streams = append(s.streams, st)
	if st.greets {
		st.rest = append(head, s.greeting()...)
	} else {
		st.rest, st.context = head, s.agent.context.Load()
	}
	if s.server.closing.Load() {
		st.move(finishing)
	}
	st.kick()
	s.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
	return true
}

// detach notes that a stream has ended.
func (s *Session) detach(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.move(broken) // unless it has ended cleanly
	if i := slices.Index(s.streams, st); i >= 0 {
		s.streams = slices.Delete(s.streams, i, i+1)
		s.quiet = time.Now()
		for _, o := range s.outcomes {
			if o.via == st && st.stage != clean { // as in resume, when the next stream was there before this one's end was seen
				o.via = nil
			}
		}
		s.kick() // what waits goes to the one that is left
	}
}

// finishStreams lets every stream send what waits and then end cleanly.
func (s *Session) finishStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		st.move(finishing)
		st.kick()
	}
}

// waitStreams waits until the streams have ended.
func (s *Session) waitStreams(ctx context.Context) {
	s.mu.Lock()
	streams := slices.Clone(s.streams)
	s.mu.Unlock()
	for _, st := range streams {
		select {
		case <-st.closed:
		case <-ctx.Done():
			return
		}
	}
}
