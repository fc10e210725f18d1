package gate

import (
	"bufio"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// closeWith closes a connection when ctx ends. The returned function undoes that.
func closeWith(ctx context.Context, c net.Conn) func() {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return func() { stop() }
}

// Variables returns the environment variables that name a proxy, in every usual spelling, as NAME=VALUE.
func Variables(address string) []string {
	env := []string{"NODE_USE_ENV_PROXY=1"} // Node from 22.21 on
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"} {
		env = append(env, name+"="+address)
	}
	return env
}

// ServeProxy serves programs that honour the proxy variables: CONNECT for TLS, absolute URLs for plain HTTP.
func (g *Gate) ServeProxy(l net.Listener) {
	passing := &http.Transport{
		DialContext: func(ctx context.Context, _, hostPort string) (net.Conn, error) {
			name, port, ok := splitHostPort(hostPort)
			if !ok {
				return nil, fmt.Errorf("%q is no host and port", hostPort)
			}
			return g.connect(ctx, contact{name: name, port: port})
		},
		MaxConnsPerHost:        maxConnections,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true,
	}
	reverse := reverseProxy(passing)
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.proxy(w, r, reverse) }),
		ReadHeaderTimeout: firstBytes,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return g.ctx },
	}
	limited := &limitedListener{Listener: l, slots: g.slots, done: g.ctx.Done()}
	context.AfterFunc(g.ctx, func() { server.Close(); passing.CloseIdleConnections() })
	g.wg.Go(func() {
		if err := server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			g.log.Warn("the sandbox's proxy ended", "err", err)
		}
	})
}

// proxy handles one request.
func (g *Gate) proxy(w http.ResponseWriter, r *http.Request, reverse http.Handler) {
	if !g.begin() {
		return
	}
	defer g.wg.Done()
	if !g.authorised(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="pollux"`)
		http.Error(w, "pollux: this proxy is for one command only", http.StatusProxyAuthRequired)
		return
	}
	if r.Method == http.MethodConnect {
		g.connectMethod(w, r)
		return
	}
	if r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil {
		http.Error(w, "pollux: this is a proxy; ask for http://host/path, or use CONNECT", http.StatusBadRequest)
		return
	}
	hostPort := r.URL.Host
	if r.URL.Port() == "" {
		hostPort = net.JoinHostPort(r.URL.Hostname(), "80")
	}
	name, port, ok := splitHostPort(hostPort)
	if ok {
		_, ok = g.contact(name, port, true)
	}
	if !ok {
		g.refuse(w, cmp.Or(name, hostPort), port)
		return
	}
	r.URL.Host = contact{name: name, port: port}.hostPort()
	if port == 80 {
		r.URL.Host = strings.TrimSuffix(r.URL.Host, ":80")
	}
	reverse.ServeHTTP(w, r)
}

func (g *Gate) authorised(r *http.Request) bool {
	if g.key == "" {
		return true
	}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("pollux:"+g.key))
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(want)) == 1
}

// connectMethod opens a tunnel.
func (g *Gate) connectMethod(w http.ResponseWriter, r *http.Request) {
	name, port, ok := splitHostPort(r.Host)
	var c contact
	if ok {
		c, ok = g.contact(name, port, false)
	}
	if !ok {
		g.refuse(w, cmp.Or(name, r.Host), port)
		return
	}
	// Dial first, so that a failure can still be reported to the client.
	out, err := g.connect(r.Context(), c)
	if err != nil {
		answerFailure(w, err)
		return
	}
	defer out.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "pollux: no tunnel here", http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	defer closeWith(g.ctx, conn)()
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	g.relay(&bufferedConn{Conn: conn, r: buffered.Reader}, out, c)
}

// A bufferedConn first reads what the server had read ahead.
type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite passes on the end of the other side.
func (c *bufferedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// refuse answers a request that the policy does not allow, in words that help a model.
func (g *Gate) refuse(w http.ResponseWriter, host string, port int) {
	g.deny(host, port, whyNot)
	http.Error(w, fmt.Sprintf("pollux: the policy of this sandbox does not allow contact with %q", host), http.StatusForbidden)
}

// answerFailure reports why an allowed contact failed.
func answerFailure(w http.ResponseWriter, err error) {
	if private := (*privateError)(nil); errors.As(err, &private) {
		http.Error(w, "pollux: "+private.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "pollux: the host cannot be reached: "+err.Error(), http.StatusBadGateway)
}

// A limitedListener accepts only as many connections as there are slots.
type limitedListener struct {
	net.Listener
	slots chan struct{}
	done  <-chan struct{}
}

// Accept waits for a slot and a connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// A slotConn gives its slot back when it is closed.
type slotConn struct {
	net.Conn
	free func()
}

// Close closes the connection.
func (c *slotConn) Close() error {
	c.free()
	return c.Conn.Close()
}

// CloseWrite passes on the end of the other side.
func (c *slotConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}
