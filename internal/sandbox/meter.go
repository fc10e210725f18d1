package sandbox

import (
	"net"
	"time"
)

// idleTimeout ends a connection to a host on which nothing was said for so long.
const idleTimeout = 10 * time.Minute

// limit makes the gate end the command when all its connections together have
// carried more than so many bytes, either way.
func (g *gate) limit(bytes int64, kill func(error)) {
	g.over = func() { kill(&LimitError{Kind: limitTraffic, Limit: bytes}) }
	g.left.Store(bytes)
}

// A meteredConn is a connection to a host: it counts what goes through it, and
// ends when nothing does.
type meteredConn struct {
	net.Conn
	g *gate
}

// Read reads and counts.
func (m *meteredConn) Read(p []byte) (int, error) {
	_ = m.SetReadDeadline(time.Now().Add(idleTimeout)) // a connection of ours has deadlines
	n, err := m.Conn.Read(p)
	return n, m.count(n, err)
}

// Write counts and writes.
func (m *meteredConn) Write(p []byte) (int, error) {
	_ = m.SetWriteDeadline(time.Now().Add(idleTimeout)) // as above
	n, err := m.Conn.Write(p)
	return n, m.count(n, err)
}

// count takes n bytes from what is left, and closes the connection when there
// is nothing left any more.
func (m *meteredConn) count(n int, err error) error {
	if m.g.over == nil || m.g.left.Add(int64(-n)) >= 0 {
		return err
	}
	m.g.over()
	m.Close()
	return net.ErrClosed
}

// CloseWrite passes the end of the other side on.
func (m *meteredConn) CloseWrite() error {
	if half, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return m.Conn.Close()
}
