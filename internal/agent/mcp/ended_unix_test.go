//go:build unix

package mcp_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/ended"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/proc"
)

// TestMain is also a process that connects and ends.
func TestMain(m *testing.M) {
	ended.Main()
	os.Exit(m.Run())
}

// accepting says when it waits for a connection.
type accepting struct {
	net.Listener
	waits chan struct{}
}

func (a accepting) Accept() (net.Conn, error) {
	a.waits <- struct{}{}
	return a.Listener.Accept()
}

// SPEC A-1, §11.1: whoever asks over a private connection is its maker. When that process has ended, nobody is known behind it, whichever
// program has its number by then.
func TestMakerEnded(t *testing.T) {
	for name, before := range map[string]bool{"before it asks": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "p")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			path := filepath.Join(dir, "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			accepts := make(chan struct{}, 10)
			b := newBenchOn(t, accepting{l, accepts}, func(o *mcp.Options) {
				o.Agents[0].Private = true
				o.Process = func(netip.AddrPort, netip.AddrPort) []proc.Info { return nil }
				o.Behind = func(pid int) []proc.Info {
					p, ok := proc.Lookup(pid)
					if !ok {
						p.PID = pid
					}
					return []proc.Info{p}
				}
			})
			conn, maker, end := ended.Connect(t, path)
			for range 2 { // it waits for the next one: this one is accepted
				select {
				case <-accepts:
				case <-time.After(patience):
					t.Fatal("the connection is not accepted")
				}
			}
			if before {
				end()
				ended.Reuse(t, maker)
			}
			const body = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
			_ = conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", testToken, len(body), body)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			sessions := b.server.Sessions()
			if len(sessions) != 1 {
				t.Fatalf("%s: %d sessions", answer.Status, len(sessions))
			}
			b.server.Unknown(t.Context()) // waits for the search
			want := maker.PID
			if before {
				want = 0
			}
			if got := b.server.Sessions()[0].PID; got != want {
				t.Errorf("its process is %d, want %d", got, want)
			}
		})
	}
}
