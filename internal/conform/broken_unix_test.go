//go:build unix

package conform

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// A proxy stands in front of a good companion and breaks it.
type proxy struct {
	// request returns nil to pass a request on, or answers it itself; it may change the request.
	request func(r *http.Request, body []byte) (answer *http.Response)
	body    func(r *http.Request, asked, answered []byte) []byte
	// event returns the event with changed data; "" drops it.
	event   func(r *http.Request, event string) string
	address string // the address to listen at
	// upgrades opens a WebSocket for any request.
	upgrades bool

	mu      sync.Mutex // guards the fields below
	latest  string     // newest session
	gets    map[string]int
	streams []*io.PipeWriter // streams that are or were open
}

func (p *proxy) isLatest(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.Header.Get("Mcp-Session-Id") == p.latest
}

// isFirst reports whether a stream is the first of its session.
func (p *proxy) isFirst(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gets[r.Header.Get("Mcp-Session-Id")] < 2
}

// tellAll writes an event to every stream.
func (p *proxy) tellAll(event string) {
	p.mu.Lock()
	streams := append([]*io.PipeWriter(nil), p.streams...)
	p.mu.Unlock()
	for _, w := range streams {
		_, _ = io.WriteString(w, event)
	}
}

// start listens in front of a companion and returns the address.
func (p *proxy) start(t *testing.T, backend string) string {
	t.Helper()
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: p.handler(l, backend)}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return local(l)
}

// local returns a listener's loopback address.
func local(l net.Listener) string { return fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port) }

func (p *proxy) handler(l net.Listener, backend string) http.Handler {
	address, to := local(l), &url.URL{Scheme: "http", Host: backend}
	through := &httputil.ReverseProxy{FlushInterval: -1, Transport: p.trip(), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		if r.In.Host == address {
			r.Out.Host = backend // the backend's own name
		}
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, ErrorLog: log.New(io.Discard, "", 0)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.upgrades || r.Header.Get("Upgrade") != "websocket" {
			through.ServeHTTP(w, r)
			return
		}
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			conn.Close()
		}
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *proxy) trip() http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		var asked []byte
		if r.Body != nil {
			asked, _ = io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(asked))
		}
		if p.request != nil {
			if answer := p.request(r, asked); answer != nil {
				answer.Request = r
				return answer, nil
			}
		}
		if r.Method == http.MethodGet {
			p.mu.Lock()
			p.gets[r.Header.Get("Mcp-Session-Id")]++
			p.mu.Unlock()
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			p.mu.Lock()
			p.latest = id
			p.mu.Unlock()
		}
		p.rewrite(r, res, asked)
		return res, nil
	})
}

func (p *proxy) rewrite(r *http.Request, res *http.Response, asked []byte) {
	switch stream := res.Header.Get("Content-Type") == "text/event-stream"; {
	case stream && p.event != nil:
		res.Body = p.filter(r, res.Body)
	case !stream && p.body != nil:
		answered, _ := io.ReadAll(res.Body)
		res.Body.Close()
		answered = p.body(r, asked, answered)
		res.Body = io.NopCloser(bytes.NewReader(answered))
		res.ContentLength = int64(len(answered))
		res.Header.Set("Content-Length", fmt.Sprint(len(answered)))
	}
}

// filter changes events.
func (p *proxy) filter(r *http.Request, in io.ReadCloser) io.ReadCloser {
	out, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { in.Close(); out.Close() })
	p.mu.Lock()
	p.streams = append(p.streams, w)
	p.mu.Unlock()
	go func() {
		defer w.Close()
		buf := make([]byte, 64<<10)
		var rest []byte
		for {
			n, err := in.Read(buf)
			rest = append(rest, buf[:n]...)
			for {
				i := bytes.Index(rest, []byte("\n\n"))
				if i < 0 {
					break
				}
				one := string(rest[:i+2])
				rest = rest[i+2:]
				if strings.Contains(one, "data: ") {
					one = p.event(r, one)
				}
				if _, err := io.WriteString(w, one); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}
