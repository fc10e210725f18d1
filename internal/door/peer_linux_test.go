package door

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/usertest"
)

// serveOwn is serve behind OwnUser.
func serveOwn(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{Credential: Bearer("secret")})
	if err := d.Admit(l.Addr()); err != nil {
		t.Fatal(err)
	}
	s := d.Server(h)
	go func() { _ = s.Serve(OwnUser(l, slog.New(slog.DiscardHandler))) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// try sends a request and returns what comes back.
func try(addr, request string, closeAtOnce bool) (string, error) {
	conn, err := net.Dial("tcp4", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, err = io.WriteString(conn, request)
	if closeAtOnce {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// SPEC A-5: another user's connection gets nothing, with the right token, in whatever shape it comes.
func TestOtherUserA5(t *testing.T) {
	var served atomic.Int32
	addr := serveOwn(t, func(w http.ResponseWriter, _ *http.Request) { served.Add(1); w.Header().Set("Connection", "close") })
	request := "GET / HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer secret\r\n\r\n"
	var answers []string
	if !usertest.Do(t, func() {
		for _, sent := range []string{request, "", "GET / HTTP/1.1\r\n", request + request,
			strings.Replace(request, "\r\n\r\n", "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", 1)} {
			answer, _ := try(addr, sent, false)
			answers = append(answers, answer)
		}
		for range 50 { // fire and forget: its socket has no user any more when it is looked for
			_, _ = try(addr, request, true)
		}
	}) {
		return
	}
	for i, answer := range answers {
		if answer != "" {
			t.Errorf("request %d of another user: %q", i, answer)
		}
	}
	if answer, err := try(addr, request, false); !strings.HasPrefix(answer, "HTTP/1.1 200") {
		t.Errorf("own: %q, %v", answer, err)
	}
	if n := served.Load(); n != 1 {
		t.Errorf("%d requests were served, want the own one alone", n)
	}
}

// SPEC A-5, T-3: a thousand at once are looked up, and a flood of strangers keeps none of them out.
func TestBurstA5(t *testing.T) {
	addr := serveOwn(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	request := "GET / HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer secret\r\n\r\n"
	done := make(chan struct{})
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		usertest.Do(t, func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = try(addr, request, true)
				}
			}
		})
	}()
	var own sync.WaitGroup
	var failed atomic.Int32
	for range 10 {
		own.Go(func() {
			for range 100 {
				if answer, _ := try(addr, request, false); !strings.HasPrefix(answer, "HTTP/1.1 200") {
					failed.Add(1)
				}
			}
		})
	}
	own.Wait()
	close(done)
	<-flooded
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of 1000 own requests failed beside a flood", n)
	}
}

// Where the system does not tell, everybody is let in, and a refusal is not the end of serving.
func TestOwnUserChecks(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refuse := errors.New("no")
	o := &ownUser{Listener: l, log: slog.New(slog.DiscardHandler)}
	for _, test := range []struct {
		name  string
		check func(net.Conn) error
		conns int
	}{
		{"untold", nil, 1},
		{"the second is ours", func() func(net.Conn) error {
			n := 0
			return func(net.Conn) error {
				if n++; n < 2 {
					return refuse
				}
				return nil
			}
		}(), 2},
	} {
		o.check = test.check
		for range test.conns {
			conn, err := net.Dial("tcp4", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		conn, err := o.Accept()
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		conn.Close()
	}
}
