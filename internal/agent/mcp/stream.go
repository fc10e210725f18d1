package mcp

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A stream carries a session's notifications to its CLI over one connection, an event
// stream or a WebSocket. It writes what the connection takes without waiting, right
// away. Only while the peer reads too slowly it has a goroutine, so that a CLI that has
// stopped reading delays nobody (SPEC T-3).
// The session's mu guards all fields but conn and closed.
type stream struct {
	session *Session
	conn    conn
	closed  chan struct{} // closed when the connection is
	once    sync.Once

	rest    []byte   // what is being written, without the part that has left
	context *frame   // the newest context, when it is not sent yet
	notes   []*frame // waiting notifications, oldest first
	state   streamState
	trust   trust

	// Two facts that go with any state:

	busy bool // the goroutine runs; then only it touches rest and writes
	due  bool // a keep-alive waits, as context and notes do
}

// A streamState is how far a stream has come.
type streamState int

const (
	flowing   streamState = iota
	finishing             // it ends when nothing waits any more
	closing               // its last bytes are being written; nothing follows them
	broken                // it has ended, and may have lost what it was writing
	clean                 // it has ended after everything was written
)

// moves is the table of allowed moves: from a state, to these. The end of a server and the end of a connection come
// in any order, so a stream may be told to finish twice, or to break after it has broken. Nothing leads back from
// clean: what was written whole is not sent again on the next stream.
var moves = map[streamState][]streamState{
	flowing:   {finishing, broken},
	finishing: {finishing, closing, broken},
	closing:   {clean, broken},
	broken:    {broken},
	clean:     {},
}

// move takes the stream to another state. One that the table does not allow does nothing. The caller holds the session's mu.
func (st *stream) move(to streamState) {
	if slices.Contains(moves[st.state], to) {
		st.state = to
	}
}

// over says whether the stream takes nothing more. A closing one counts: nothing may follow its last bytes, or the CLI
// would take a clean end for a broken one. The caller holds the session's mu.
func (st *stream) over() bool { return st.state >= closing }

// A trust says whether the CLI is known to have read the outcomes that were written.
type trust int

const (
	unasked   trust = iota // nobody asks: the CLI comes back with a Last-Event-ID
	confirmed              // a ping follows each outcome: the CLI came back after a restart without a Last-Event-ID
	doubted                // an outcome was written, and its ping not yet
)

// nextTrust is the table of allowed moves. Only attach decides whether pings are sent at all, before the stream begins.
var nextTrust = map[trust]trust{confirmed: doubted, doubted: confirmed}

// note takes the stream to another trust. A stream that sends no pings stays unasked, and several outcomes may share a ping.
// The caller holds the session's mu.
func (st *stream) note(to trust) {
	if next, ok := nextTrust[st.trust]; ok && next == to {
		st.trust = to
	}
}

// A conn is the way to one peer.
type conn interface {
	// message encodes a notification for this conn; id is "" for one without an id.
	message(f *frame, id string) []byte
	// beat returns a keep-alive to write; nil when the conn has sent one itself.
	beat() []byte
	// last returns what to write before a clean end.
	last(retry time.Duration) []byte
	// try writes what goes without waiting, and returns how many bytes that was.
	try(b []byte) int
	// write writes everything, with a time limit for each piece.
	write(b []byte) error
	// close ends the connection, and any running write.
	close()
}

func newStream(s *Session, c conn) *stream {
	return &stream{session: s, conn: c, closed: make(chan struct{})}
}

// kick writes what waits, and starts the goroutine when the peer does not take it at once. Nearly every notification
// fits the socket's buffer, so a session that is read costs neither a goroutine nor a wake-up. The caller holds the session's mu.
func (st *stream) kick() {
	if st.busy || st.over() { // while it is busy, drain finds by itself what waits
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
	if st.state == closing {
		st.move(clean)
		go st.close() // it takes s.mu, which is held here
	}
}

// load fills rest with what to write next; false when there is nothing. Outcomes go
// first, and only on the newest stream. The caller holds the session's mu.
func (st *stream) load() bool {
	if len(st.rest) > 0 {
		return true
	}
	st.rest = st.next()
	return len(st.rest) > 0
}

// next takes the next thing to write off what waits. Outcomes come first: an agent waits for them, and every other
// thing can be said anew. A ping stands right behind the outcomes that it confirms. The end comes when nothing else waits.
// The caller holds the session's mu.
func (st *stream) next() []byte {
	s := st.session
	if st.over() {
		return nil
	}
	// Two streams that shared the outcomes could not be confirmed by one Last-Event-ID. So only the newest carries them:
	// a CLI opens another one when it has given up the first.
	if len(s.streams) > 0 && s.streams[len(s.streams)-1] == st {
		for _, o := range s.outcomes {
			if o.via == nil {
				// It stays in the queue until it is confirmed. If this stream breaks, detach makes it wait again.
				o.via, o.sent, o.ping = st, time.Now(), ""
				st.note(doubted)
				s.trim(o.sent)
				return st.conn.message(newFrame(s.agent.Dialect.Outcome(o.as, o.path, o.content)), s.eventID(o.seq))
			}
		}
	}
	if st.trust == doubted {
		return st.ask()
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
	if st.due {
		st.due = false
		return st.conn.beat()
	}
	if st.state == finishing {
		st.move(closing)
		return st.conn.last(s.server.o.Retry)
	}
	return nil
}

// ask returns a ping. Whoever answers it has read all that was written before it. The caller holds the session's mu.
func (st *stream) ask() []byte {
	ping := strconv.Quote(rand.Text())
	for _, o := range st.session.outcomes {
		if o.via == st && o.ping == "" {
			o.ping = ping
		}
	}
	st.note(confirmed)
	return st.conn.message(newFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`, ping)), "")
}

// drain writes on a goroutine of its own until nothing waits. It holds the session's mu only between writes.
func (st *stream) drain() {
	s := st.session
	s.mu.Lock()
	for st.load() {
		b := st.rest
		s.mu.Unlock()
		err := st.conn.write(b)
		s.mu.Lock()
		st.rest = nil
		if err != nil && st.state != closing { // a failure of the last bytes loses nothing
			st.move(broken)
			break
		}
	}
	st.busy = false
	st.move(clean) // only when it was closing
	over := st.over()
	s.mu.Unlock()
	if over {
		st.close()
	}
}

// close ends the connection and detaches the stream from its session. It happens once, whoever is first: the peer, the end of
// the session, a newer stream in its place, or drain. The caller must not hold the session's mu.
func (st *stream) close() {
	st.once.Do(func() {
		st.conn.close()
		st.session.detach(st)
		close(st.closed)
	})
}

// retryLine tells the CLI when to come back. At a clean end it comes back without a word, and its user notices nothing (SPEC T-5).
func retryLine(retry time.Duration) []byte {
	return fmt.Appendf(nil, "retry: %d\n\n", retry.Milliseconds())
}
