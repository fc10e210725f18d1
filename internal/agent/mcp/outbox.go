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
// Last-Event-ID, as the published CLIs always do, or by its answer to a ping. A CLI has not read everything that was written to its socket (SPEC T-6).
type outcome struct {
	id      string // the diff's
	path    string // as the CLI spelled it
	as      string // Accepted, Rejected, or another word of the dialect's
	content string
	edited  bool
	seq     uint64
	via     *stream // the stream that it was sent on; nil when it was not sent yet, or when that stream has broken
	sent    time.Time
	ping    string // the id, as JSON, of the ping that was sent after it; "" when none was
	brought bool   // from an earlier life, which may have sent it
}

// tellOutcome writes an outcome down, queues its notification, and sends it when a stream is there. The order matters: after a
// crash, the journal must know every outcome that the CLI may have been sent, so that its numbers are not used again. It all
// happens under s.mu, so that numbers, journal and queue have one order.
func (s *Session) tellOutcome(d *review.Diff, as string, final review.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, journal := d.Proposal().Key, s.server.o.Journal
	// The CLI has taken this diff back since it was opened, and would take the outcome for that of its next one (SPEC F-4).
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
			content = &final.Content
		}
		journal.Decided(d.ID(), content, as, s.life, s.seq)
	}
	s.queue(&outcome{id: d.ID(), path: path, as: as, content: final.Content, edited: final.Edited, seq: s.seq})
	s.kick()
}

// queue adds an outcome. Its text counts against the registry's memory until letGo releases it: a CLI that proposes and
// never listens would otherwise fill the memory with decided texts. The caller holds s.mu.
func (s *Session) queue(o *outcome) {
	s.server.o.Registry.Hold(len(o.content))
	s.outcomes = append(s.outcomes, o)
}

// maxUnheard is how many outcomes may wait for a session that has no stream. After that it may propose nothing more.
const maxUnheard = 32

// errDeaf is the error for a session that does not fetch its outcomes.
var errDeaf = fmt.Errorf("%d outcomes wait for this session, which has no event stream; open one, then propose this one again", maxUnheard)

// listens fails with errDeaf when too many outcomes wait for the session. Outcomes that were sent on a stream that broke do not
// count: the CLI has most likely heard them. The same holds, for a while, for what a killed companion left.
func (s *Session) listens() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, returning := 0, time.Since(s.server.begun) < s.server.o.Grace
	for _, o := range s.outcomes {
		if o.via == nil && o.sent.IsZero() && !(o.brought && returning) {
			waiting++
		}
	}
	if waiting >= maxUnheard {
		return errDeaf
	}
	return nil
}

// tellContext gives the newest stream the newest context. A context that was not sent yet is replaced: it says where the
// user is, not what happened, so an older one is of no use to a CLI that reads slowly.
func (s *Session) tellContext(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) > 0 {
		st := s.streams[len(s.streams)-1]
		st.context = f
		st.kick()
	}
}

// tellAgain repeats the context for an agent that has just connected. Claude Code silently drops notifications until its window
// listens, a while after its last request.
func (s *Session) tellAgain() {
	if !s.agent.Socket {
		return
	}
	for _, later := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 6 * time.Second} {
		time.AfterFunc(later, func() { s.tellContext(s.agent.context.Load()) }) // harmless once the session has ended
	}
}

// kick sends what waits, on the newest stream. The caller holds s.mu.
func (s *Session) kick() {
	if len(s.streams) > 0 {
		s.streams[len(s.streams)-1].kick()
	}
}

// forget drops the outcomes of a file that wait or are on their way, and outcomes of
// its diffs that are being settled right now. The CLI has taken that diff back, or
// proposes anew, and an outcome that came now would settle the wrong one (SPEC F-4).
// When the user has accepted and the CLI has not heard of it, forget returns the newest
// such acceptance: its text should still reach the CLI.
func (s *Session) forget(path string) (accepted review.Outcome, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.closed) >= maxClosed {
		clear(s.closed) // nearly all entries are old
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

// maxClosed bounds the paths that forget remembers, since a peer chooses them.
const maxClosed = 256

// beat sends a keep-alive on each stream, so that Node takes none for dead (SPEC T-5), and drops outcomes that no CLI will
// ask for again. Both have time, so one timer serves all sessions.
func (s *Session) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		st.due = true
		st.kick()
	}
	s.trim(time.Now())
}

// trim bounds the outcomes that were sent and are still kept, for a CLI that asks for them again by its Last-Event-ID. A
// CLI that has not come back after keptFor will not. It never drops an outcome that was not sent. The caller holds s.mu.
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

// eventID returns the id of an event: every outcome up to seq was sent with it or before.
func (s *Session) eventID(seq uint64) string {
	return s.life + "-" + strconv.FormatUint(seq, 10)
}

// resume prepares the queue for a new stream of a client that has read up to
// lastEventID. It drops the outcomes up to that id, and sends the later ones again.
// Without an id, or with one of another life, it sends those again whose stream has
// ended: the client may not have read them. The caller holds s.mu.
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

// answered drops the outcomes that stood before the ping with this id: its CLI has read them.
func (s *Session) answered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard(s.letGo(func(o *outcome) bool { return o.ping == id }))
}

// greeting returns the beginning of a stream: when to come back, and the newest context.
// The context's id is the last outcome before the first that waits, so that a client
// that breaks off here asks for the right ones (SPEC T-7). The caller holds s.mu.
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

// attach makes st the session's newest stream and starts it. head begins an event stream, and the session's greeting
// follows it; it is nil for a WebSocket. attach returns false when the session has ended. The oldest of too many streams
// is closed after s.mu is released, because close takes s.mu.
func (s *Session) attach(st *stream, head []byte, lastEventID string) bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	s.resume(lastEventID)
	var oldest *stream
	if len(s.streams) == maxStreams {
		oldest = s.streams[0]
		s.streams = slices.Delete(s.streams, 0, 1)
		oldest.move(broken) // at once, not only by its close: it must write nothing in between
	}
	s.streams = append(s.streams, st)
	if head == nil {
		st.context = s.agent.context.Load()
	} else {
		st.rest = append(head, s.greeting()...)
		if s.adopted && lastEventID == "" {
			st.trust = confirmed
		}
	}
	if s.server.closing.Load() { // finishStreams may have been there already; this one hears what waits, and ends
		st.move(finishing)
	}
	st.kick()
	s.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
	return true
}

// detach notes that a stream has ended. Outcomes that it may have lost wait again.
func (s *Session) detach(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.move(broken) // does nothing when it has ended cleanly
	if i := slices.Index(s.streams, st); i >= 0 {
		s.streams = slices.Delete(s.streams, i, i+1)
		s.rests()
		for _, o := range s.outcomes {
			if o.via == st && st.state != clean { // resume could not do that when the next stream came before this one's end
				o.via = nil
			}
		}
		s.kick() // the stream that is left takes what waits
	}
}

// finishStreams lets every stream send what waits, and then end cleanly. A CLI that hears of the rejections at the end of a
// companion is not left at its question (SPEC L-1).
func (s *Session) finishStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		st.move(finishing)
		st.kick()
	}
}

// waitStreams waits until the streams have ended. It looks at a copy of the list, because each that ends takes itself off it.
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
