package door

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A pipes is a listener whose connections are pipes, whose deadlines are in the test's time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// a connection on which nothing moves any more, wherever it stopped, is
// closed after its bound, to the second, and nothing of it stays.
func TestHalfOpen(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: pipe\r\nContent-Length: 10\r\n\r\n"
	for _, test := range []struct {
		name, sent string
		answer     bool          // comes before the silence
		drip       time.Duration // one more byte that often
		want       time.Duration
	}{
		{"silent from the beginning", "", false, 0, HeaderTimeout},
		{"half a head", "POST / HTTP/1.1\r\nHo", false, 0, HeaderTimeout},
		{"a head that drips", "POST / HTTP/1.1\r\nX: ", false, time.Second, HeaderTimeout},
		{"half a body", head + "12345", false, 0, RequestTimeout},
		{"a body that drips", strings.Replace(head, "10", "99", 1), false, time.Second, RequestTimeout},
		{"idle after a request", head + "1234567890", true, 0, RequestTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				d := New(Options{})
				if err := d.Admit(l.Addr()); err != nil {
					t.Fatal(err)
				}
				s := d.Server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
				go func() { _ = s.Serve(l) }()
				ours, theirs := net.Pipe()
				l.conns <- theirs
				start := time.Now()
				var typing sync.WaitGroup
				typing.Go(func() {
					_, err := io.WriteString(ours, test.sent)
					for test.drip > 0 && err == nil {
						time.Sleep(test.drip)
						_, err = io.WriteString(ours, "x")
					}
				})
				in := bufio.NewReader(ours)
				if test.answer {
					res, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
				}
				if _, err := io.Copy(io.Discard, in); err != nil && !errors.Is(err, io.ErrClosedPipe) {
					t.Error(err)
				}
				if took := time.Since(start); took < test.want || took > test.want+time.Second {
					t.Errorf("closed after %v, want %v", took, test.want)
				}
				_ = ours.Close()
				_ = s.Close()
				typing.Wait() // the bubble makes sure that no other goroutine is left
			})
		})
	}
}
