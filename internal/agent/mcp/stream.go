package mcp

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A stream carries a session's notifications to its CLI over one connection:
// an event stream or a WebSocket. It writes at once what the connection takes
// without waiting; only while the peer reads too slowly it has a goroutine,
// so that a CLI which has stopped reading delays nobody (SPEC T-3).
//
// All fields but conn and closed are guarded by the session's mu.
type stream struct {
	session *Session
	conn    conn
	greets  bool          // the greeting goes along with the head: an event stream
	closed  chan struct{} // closed when the connection is
	once    sync.Once

	rest    []byte   // of what is being written
	context *frame   // the newest context, not yet begun
	notes   []*frame // that wait, oldest first
	busy    bool     // the goroutine runs; it alone touches rest and writes
	pulse   pulse
	stage   stage
}

// A stage is how far a stream has come.
type stage int

const (
	flowing   stage = iota
	finishing       // it ends when nothing waits
	closing         // its last words are being written; nothing else follows
	broken          // it has ended, and what it was to bring may be lost
	clean           // it has ended with nothing left
)

// stages is the table of allowed moves: from a stage, to these.
var stages = map[stage][]stage{
	flowing:   {finishing, broken},
	finishing: {finishing, closing, broken},
	closing:   {clean, broken},
	broken:    {broken},
	clean:     {},
}

// move takes the stream to another stage; one that cannot follow leaves it where it is. The caller holds the session's mu.
func (st *stream) move(to stage) {
	if slices.Contains(stages[st.stage], to) {
		st.stage = to
	}
}

// over says whether nothing more is begun on the stream. The caller holds the session's mu.
func (st *stream) over() bool { return st.stage >= closing }

// A pulse says whether a stream needs a keep-alive.
type pulse int

const (
	silent pulse = iota // since the last beat
	wrote               // something was written since
	due                 // it was silent from one beat to the next
)

// A conn is the way to one peer.
type conn interface {
	// message is a notification as this conn writes it; id is "" for one without.
	message(f *frame, id string) []byte
	// beat is a keep-alive to be written; nil when the conn has sent one itself.
	beat() []byte
	// last is what is written before a clean end.
	last(retry time.Duration) []byte
	// try writes what goes without waiting and reports how much that was.
	try(b []byte) int
	// write writes everything, within a bound of time for each piece.
	write(b []byte) error
	// close ends the connection, and every call of write.
	close()
}

func newStream(s *Session, c conn) *stream {
	return &stream{session: s, conn: c, closed: make(chan struct{})}
}

// kick writes what waits. The caller holds the session's mu.
func (st *stream) kick() {
	if st.busy || st.over() {
		return
	}
	for st.load() {
		st.rest = st.rest[st.conn.try(st.rest):]
		if len(st.rest) > 0 {
			st.busy = true
			go st.drain()
			return
		}
	}
	if st.stage == closing {
		st.move(clean)
		go st.close()
	}
}

// load puts what is to be written next into rest; false when there is
// nothing. Outcomes go first, and to the newest stream only.
func (st *stream) load() bool {
	if len(st.rest) > 0 {
		return true
	}
	st.rest = st.next()
	if len(st.rest) > 0 {
		st.pulse = wrote
	}
	return len(st.rest) > 0
}

func (st *stream) next() []byte {
	s := st.session
	if st.over() {
		return nil
	}
	if len(s.streams) > 0 && s.streams[len(s.streams)-1] == st {
		for _, o := range s.outcomes {
			if o.via == nil {
				o.via, o.sent = st, time.Now()
				s.trim(o.sent)
				return st.conn.message(newFrame(s.agent.Dialect.Outcome(o.as, o.path, o.content)), s.eventID(o.seq))
			}
		}
	}
	if f := st.context; f != nil {
		st.context = nil
		return st.conn.message(f, "")
	}
	if len(st.notes) > 0 {
		f := st.notes[0]
		st.notes = st.notes[1:]
		return st.conn.message(f, "")
	}
	if st.pulse == due {
		st.pulse = silent
		return st.conn.beat()
	}
	if st.stage == finishing {
		st.move(closing)
		return st.conn.last(s.server.o.Retry)
	}
	return nil
}

// beat is one of the keep-alive's clock. The caller holds the session's mu.
func (st *stream) beat() {
	if st.pulse == wrote {
		st.pulse = silent
	} else {
		st.pulse = due
	}
}

// drain writes on a goroutine of its own until nothing waits.
func (st *stream) drain() {
	s := st.session
	s.mu.Lock()
	for st.load() {
		b := st.rest
		s.mu.Unlock()
		err := st.conn.write(b)
		s.mu.Lock()
		st.rest = nil
		if err != nil && st.stage != closing { // of the last words nothing is missed
			st.move(broken)
			break
		}
	}
	st.busy = false
	st.move(clean) // when it was closing
	over := st.over()
	s.mu.Unlock()
	if over {
		st.close()
	}
}

// close ends the connection; the session hears of it.
func (st *stream) close() {
	st.once.Do(func() {
		st.conn.close()
		st.session.detach(st)
		close(st.closed)
	})
}

func retryLine(retry time.Duration) []byte {
	return fmt.Appendf(nil, "retry: %d\n\n", retry.Milliseconds())
}
