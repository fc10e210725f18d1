package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/door"
	"github.com/pollux-companion/pollux/internal/pace"
)

// honest opens and closes a diff, as long as the abuse lasts, and returns the longest it took.
func honest(b *bench, watch *pace.Watch, stop <-chan struct{}) time.Duration {
	c := b.connect()
	longest := time.Duration(0)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return longest
		default:
		}
		path := fmt.Sprintf("%s/honest%d", b.dir, i)
		begun := watch.Took()
		c.mustOpen(path, "x")
		longest = max(longest, watch.Took()-begun)
		c.closeDiff(path)
		time.Sleep(5 * time.Millisecond)
	}
}

// during runs an abuse beside an honest CLI, and then looks whether the
// server is as it was: goroutines and memory.
func during(t *testing.T, abuse func(b *bench)) {
	b := newBench(t, func(o *mcp.Options) { o.Grace = time.Second })
	b.connect()
	before, heap := runtime.NumGoroutine(), heapNow()
	stop := make(chan struct{})
	longest := make(chan time.Duration)
	watch := pace.Start(t)
	go func() {
		defer close(longest) // also when a failure ends it early
		longest <- honest(b, watch, stop)
	}()
	abuse(b)
	close(stop)
	if took := <-longest; took > pace.Slack*time.Second {
		t.Errorf("an honest openDiff took %v", took)
	}
	eventually(t, "every session ends", func() bool { return len(b.server.Sessions()) == 0 })
	eventually(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before+10 })
	if grown := int64(heapNow()) - int64(heap); grown > 8<<20 {
		t.Errorf("the heap grew by %d KB", grown>>10)
	}
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func (b *bench) dial() net.Conn {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

// connections is want, or as many of them, both ends, as this process may hold.
func connections(t *testing.T, want int) int {
	const others = 128
	n := min(want, (descriptors(t)-others)/2)
	if n < want {
		t.Logf("%d connections: this process may hold no more", n)
	}
	return n
}

// 1,000 connections that never finish asking. The oldest strangers make
// room; connections with the token are ended by the deadline (30 s; not waited for here).
func TestAbuseHalfOpen(t *testing.T) {
	during(t, func(b *bench) {
		var conns []net.Conn
		n := connections(t, 1000)
		for i := range n {
			conn := b.dial()
			conns = append(conns, conn)
			if i%2 == 0 {
				fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\n", b.addr)
			}
		}
		if n > door.MaxStrangers {
			_ = conns[0].SetReadDeadline(time.Now().Add(patience))
			if _, err := conns[0].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
				t.Errorf("the oldest stranger is still there: %v", err)
			}
		}
		for _, conn := range conns {
			conn.Close()
		}
	})
}

// T-4, A-4: bodies of 100 MB, announced or not, with the right token; like
// JSON or not, in a session or not.
func TestAbuseHugeBodies(t *testing.T) {
	during(t, func(b *bench) {
		session := b.connect().session
		const chunked = "Transfer-Encoding: chunked"
		for _, test := range []struct{ framing, session, begin, want string }{
			{"Content-Length: 104857600", session, `{"a":"`, " 413 "},
			{chunked, session, `{"a":"`, " 413 "},
			{chunked, session, ``, " 400 "},
			{chunked, "", `{"a":"`, " 400 "},
		} {
			conn := b.dial()
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n", b.addr, testToken, test.framing)
			if test.session != "" {
				fmt.Fprintf(conn, "Mcp-Session-Id: %s\r\n", test.session)
			}
			fmt.Fprintf(conn, "\r\n")
			chunk := append(append([]byte("100000\r\n"), bytes.Repeat([]byte(" "), 1<<20)...), "\r\n"...)
			copy(chunk[len("100000\r\n"):], test.begin)
			for i := range 100 {
				if i == 1 {
					copy(chunk[len("100000\r\n"):], "      ")
				}
				if _, err := conn.Write(chunk); err != nil {
					break // refused meanwhile
				}
			}
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			answer, _ := io.ReadAll(conn)
			if len(answer) > 0 && !bytes.Contains(answer, []byte(test.want)) {
				t.Errorf("%+v: %.60q", test, answer)
			}
			conn.Close()
		}
	})
}

// bad tokens, foreign Hosts and Origins, each with 5 MB behind it, are
// answered from their headers.
func TestAbuseStrangers(t *testing.T) {
	during(t, func(b *bench) {
		junk := bytes.Repeat([]byte("j"), 5<<20)
		for i := range 40 {
			host, token, origin, want := b.addr, testToken, "http://"+b.addr, " 401 "
			switch i % 3 {
			case 0:
				token = "wrong"
			case 1:
				host, want = "attacker.example", " 403 "
			case 2:
				origin, want = "http://attacker.example", " 403 "
			}
			conn := b.dial()
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nOrigin: %s\r\nContent-Length: %d\r\n\r\n", host, token, origin, len(junk))
			answer := make([]byte, 64)
			_ = conn.SetDeadline(time.Now().Add(patience))
			n, err := conn.Read(answer) // before any of the body
			if err != nil || !bytes.Contains(answer[:n], []byte(want)) {
				t.Errorf("answer %q, %v; want%s", answer[:n], err, want)
			}
			go func() { // what follows is not read
				_, _ = conn.Write(junk)
				conn.Close()
			}()
		}
	})
}

// T-3: 1,000 sessions get a storm of contexts, and half of them read nothing.
func TestAbuseSessions(t *testing.T) {
	during(t, func(b *bench) {
		var mu sync.Mutex
		var conns []net.Conn
		var all sync.WaitGroup
		each := connections(t, 1000) / 8
		for range 8 {
			all.Go(func() {
				for range each {
					c := b.connect()
					conn := c.rawStream()
					c.client.CloseIdleConnections()
					mu.Lock()
					conns = append(conns, conn)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for i := range 50 {
			b.server.Publish(snapshotWithCursorAt(i))
		}
		for _, conn := range conns {
			conn.Close()
		}
	})
}

// a flood of malformed messages on one connection is answered one by one.
func TestAbuseMalformed(t *testing.T) {
	during(t, func(b *bench) {
		c := b.connect()
		for i, body := range []string{`{`, `[`, `"`, `[[]]`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, strings.Repeat("[", 1<<20), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, "\x00\xff"} {
			if res := c.post(body); res.status != 400 && res.status != 200 {
				t.Errorf("%d: status %d", i, res.status)
			}
		}
	})
}
