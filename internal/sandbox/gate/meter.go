package gate

import (
	"net"
	"time"
)

// idleTimeout ends a connection to a host after this long without traffic.
const idleTimeout = 10 * time.Minute

// Limit calls over once all connections together have carried more than this many bytes, both directions added. It is
// called before anything is served; over may be called more than once.
func (g *Gate) Limit(bytes int64, over func()) {
	g.over = over
	g.left.Store(bytes)
}

// A meteredConn is a connection to a host. It counts its bytes and ends when idle.
type meteredConn struct {
	net.Conn
	g *Gate
}

// Read reads and counts.
func (m *meteredConn) Read(p []byte) (int, error) {
	_ = m.SetReadDeadline(time.Now().Add(idleTimeout)) // a TCP connection has deadlines
	n, err := m.Conn.Read(p)
	return n, m.count(n, err)
}

// Write counts and writes.
func (m *meteredConn) Write(p []byte) (int, error) {
	_ = m.SetWriteDeadline(time.Now().Add(idleTimeout)) // a TCP connection has deadlines
	n, err := m.Conn.Write(p)
	return n, m.count(n, err)
}

// count subtracts n bytes from what is left, and closes the connection when nothing is left.
func (m *meteredConn) count(n int, err error) error {
	if m.g.over == nil || m.g.left.Add(int64(-n)) >= 0 {
		return err
	}
	m.g.over()
	m.Close()
	return net.ErrClosed
}

// CloseWrite passes on the end of the other side.
func (m *meteredConn) CloseWrite() error {
	if half, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return m.Conn.Close()
}
