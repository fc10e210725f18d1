package gate

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// tlsHandshake is the first byte of every connection that speaks TLS.
const tlsHandshake = 0x16

// firstByte returns the first byte that the command sends, without consuming it.
func firstByte(conn net.Conn) (net.Conn, byte, error) {
	_ = conn.SetReadDeadline(time.Now().Add(firstBytes)) // a TCP connection has deadlines
	r := bufio.NewReader(conn)
	first, err := r.Peek(1)
	if err != nil {
		return nil, 0, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	return &bufferedConn{Conn: conn, r: r}, first[0], nil
}

// plain relays HTTP without TLS, request by request, using the connection out first. Each request must be for the
// contact's host, and the gate rewrites its Host header. Raw bytes could ask the same server for another site.
func (g *Gate) plain(conn, out net.Conn, c contact) {
	first := make(chan net.Conn, 1)
	first <- out
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case conn := <-first:
				return conn, nil
			default:
				return g.connect(ctx, c)
			}
		},
		MaxConnsPerHost: maxConnections, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 1 << 20, DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	reverse := reverseProxy(transport)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	l := &singleListener{conn: make(chan net.Conn, 1), done: make(chan struct{}), addr: conn.LocalAddr()}
	l.conn <- conn
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handlers.Add(1)
			defer handlers.Done()
			g.passPlain(w, r, c, reverse)
		}),
		ReadHeaderTimeout: firstBytes, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return g.ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				l.Close()
			}
		},
	}
	defer context.AfterFunc(g.ctx, func() { server.Close() })()
	_ = server.Serve(l) // it ends with the connection
}

// passPlain handles one request of plain.
func (g *Gate) passPlain(w http.ResponseWriter, r *http.Request, c contact, reverse http.Handler) {
	if r.Method == http.MethodConnect {
		http.Error(w, "pollux: this is no proxy", http.StatusBadRequest)
		return
	}
	if !c.isCalled(r.Host) {
		g.deny(r.Host, c.port, "the connection was to "+c.name)
		http.Error(w, "pollux: the connection is to "+c.name+", and the request for another host", http.StatusForbidden)
		return
	}
	r.URL.Scheme, r.URL.Host = "http", strings.TrimSuffix(c.hostPort(), ":80")
	reverse.ServeHTTP(w, r)
}

// isCalled says whether a Host header means the contact. "" does, as in HTTP/1.0.
func (c contact) isCalled(header string) bool {
	if header == "" {
		return true
	}
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = header
	}
	name, ok := hostName(host)
	return ok && (name == c.name || loopbackName(name) && loopbackName(c.name))
}

func loopbackName(name string) bool {
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && addr.IsLoopback()
}

// reverseProxy forwards requests to the address that the gate put into them.
func reverseProxy(transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.Out.URL.Host // not the Host header that the program wrote
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { answerFailure(w, err) },
	}
}

// A singleListener accepts one connection.
type singleListener struct {
	conn  chan net.Conn
	done  chan struct{}
	addr  net.Addr
	close sync.Once
}

// Accept returns the connection, and then blocks until Close.
func (l *singleListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *singleListener) Close() error {
	l.close.Do(func() { close(l.done) })
	return nil
}

// Addr is the address at which the connection arrived.
func (l *singleListener) Addr() net.Addr { return l.addr }
