package gate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// transparent serves a connection whose program believes that it reached the host itself. The address that it dialled
// says which host it means.
func (g *Gate) transparent(conn net.Conn) {
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return
	}
	addr, port := local.Addr().Unmap(), int(local.Port())
	names := []string{addr.String()}
	if addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || addr == netip.IPv6Loopback() {
		names = append(names, "localhost")
	}
	g.mu.Lock()
	if name := g.names[addr]; name != "" {
		names = []string{name}
	}
	g.mu.Unlock()
	for _, name := range names {
		if c, ok := g.contact(name, port, false); ok {
			if out, err := g.connect(g.ctx, c); err == nil {
				g.relay(conn, out, c)
			} else {
				reset(conn)
			}
			return
		}
	}
	reset(conn)
	g.deny(names[0], port, whyNot)
}

// reset makes closing the connection look like a failure to the program.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // sends RST instead of a normal end
	}
}

// relay copies bytes between the command and an allowed host, and closes the host's side at the end. It looks at the first
// bytes first: many sites may answer at one address, and only one of them is allowed. Where TLS and
// plain HTTP are allowed, the first byte says which of them it is.
func (g *Gate) relay(conn, out net.Conn, c contact) {
	defer out.Close()
	defer closeWith(g.ctx, out)()
	var first []byte
	encrypted := c.tls
	if c.web && !c.tls {
		buffered, b, err := firstByte(conn)
		if err != nil {
			return
		}
		if conn, encrypted = buffered, b == tlsHandshake; !encrypted {
			g.plain(conn, out, c)
			return
		}
	}
	if encrypted {
		var ok bool
		if first, ok = g.helloFor(conn, c); !ok {
			return
		}
	}
	if _, err := out.Write(first); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pipe(out, conn)
	}()
	pipe(conn, out)
	<-done
}

// pipe copies until one side ends, and passes that end on. An error in one direction ends both.
func pipe(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be closed already
		return
	}
	to.Close()
}

// errSeen ends a handshake once its first message has been read.
var errSeen = errors.New("seen")

// helloFor reads the first TLS message, which must name the host or no host. It returns the bytes read, which the
// host still has to answer. Without this check, a TLS client could ask an allowed server for another site.
func (g *Gate) helloFor(conn net.Conn, c contact) ([]byte, bool) {
	_ = conn.SetReadDeadline(time.Now().Add(firstBytes)) // a TCP connection has deadlines
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	recorded := &recorder{Conn: conn}
	name, seen := "", false
	err := tls.Server(recorded, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, seen = hello.ServerName, true
		return nil, errSeen
	}}).HandshakeContext(context.Background())
	switch asked, ok := hostName(name); {
	case !seen:
		if recorded.read.Len() > 0 {
			g.deny(c.name, c.port, "only TLS is allowed there")
		}
		g.log.Debug("no TLS", "err", err)
		return nil, false
	case name != "" && (!ok || asked != c.name):
		g.deny(name, c.port, "the connection was to "+c.name)
		return nil, false
	}
	return recorded.read.Bytes(), true
}

// A recorder keeps what is read and drops what is written: the host answers the handshake, and not this process.
type recorder struct {
	net.Conn
	read bytes.Buffer
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.read.Write(p[:n])
	return n, err
}

func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
