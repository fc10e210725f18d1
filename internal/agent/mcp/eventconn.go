package mcp

import (
	"net"
	"syscall"
	"time"
)

// An eventConn is the connection of one event stream.
type eventConn struct {
	conn net.Conn
	raw  syscall.RawConn // nil when conn has none
	// attempt is the function for raw.Write, made once so that a write allocates nothing: buf goes in, sent comes out.
	attempt func(fd uintptr) bool
	buf     []byte
	sent    int
}

func newEventConn(c net.Conn) *eventConn {
	e := &eventConn{conn: c}
	if sc, ok := c.(syscall.Conn); ok {
		e.raw, _ = sc.SyscallConn()
	}
	e.attempt = func(fd uintptr) bool {
		e.sent = writeNow(fd, e.buf)
		return true // whatever happened, do not wait
	}
	return e
}

func (e *eventConn) message(f *frame, id string) []byte {
	if id == "" {
		return f.sse()
	}
	b := make([]byte, 0, len(id)+len(f.sse())+5)
	b = append(append(append(b, "id: "...), id...), '\n')
	return append(b, f.sse()...)
}

func (e *eventConn) beat() []byte { return []byte(":\n\n") }

func (e *eventConn) last(retry time.Duration) []byte { return retryLine(retry) }

// try writes what goes without waiting. One goroutine at a time calls it, with the session's mu held.
func (e *eventConn) try(b []byte) int {
	if e.raw == nil {
		return 0
	}
	e.buf, e.sent = b, 0
	_ = e.raw.Write(e.attempt) // the next write sees the error again
	e.buf = nil
	return max(e.sent, 0)
}

func (e *eventConn) write(b []byte) error {
	for len(b) > 0 {
		_ = e.conn.SetWriteDeadline(time.Now().Add(pieceTimeout))
		n, err := e.conn.Write(b[:min(len(b), pieceSize)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (e *eventConn) close() { _ = e.conn.Close() }
