package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A socketCLI is a client of SPEC T-10.
type socketCLI struct {
	t   *testing.T
	ctx context.Context
	c   *websocket.Conn
}

func (b *bench) socket(t *testing.T, header ...string) *socketCLI {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	h := http.Header{"Authorization": {"Bearer " + testToken}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	c, _, err := websocket.Dial(ctx, "ws://"+b.addr+"/stream", &websocket.DialOptions{HTTPHeader: h, Subprotocols: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return &socketCLI{t, ctx, c}
}

func (s *socketCLI) send(text string) {
	s.t.Helper()
	if err := s.c.Write(s.ctx, websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// expect reads the next message, which must contain want.
func (s *socketCLI) expect(want string) string {
	s.t.Helper()
	_, b, err := s.c.Read(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(string(b), want) {
		s.t.Fatalf("got %.200s, want %s", b, want)
	}
	return string(b)
}

const socketInitialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"ws","version":"1"}}}`

// T-10: the session over WebSocket: answers, context and outcomes on one socket; it joins an
// existing session by its id, and what had waited comes.
func TestWebSocket(t *testing.T) {
	b := newBench(t, nil)
	s := b.socket(t)
	s.send(socketInitialize)
	s.expect(`"protocolVersion":"2025-06-18"`)
	s.expect("ide/contextUpdate")
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	open := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"x"}}}`, b.dir+"/a")
	s.send(open)
	s.expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	d := b.registry.Pending()[0]
	_ = b.registry.Accept(d.ID(), d.Now().Seen, nil)
	s.expect("ide/diffAccepted")
	s.send(`not JSON`)
	s.expect("-32700")
	s.send(`{"jsonrpc":"2.0","id":3,"method":"initialize"}`)
	s.expect("-32600")
	if n := len(b.server.Sessions()); n != 1 {
		t.Fatalf("%d sessions", n)
	}

	c := b.connect()
	c.mustOpen(b.dir+"/b", "y")
	_ = b.registry.Reject(b.registry.Pending()[0].ID())
	eventually(t, "the outcome waits", func() bool {
		return b.server.Waiting(c.session) == 1
	})
	joined := b.socket(t, "Mcp-Session-Id", c.session)
	joined.expect("ide/diffRejected")
	joined.expect("ide/contextUpdate")
}

// T-10, A-4: what does not begin with initialize, or is not text, is shown the door.
func TestWebSocketRefuses(t *testing.T) {
	b := newBench(t, nil)
	s := b.socket(t)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	s.expect("-32600")
	if _, _, err := s.c.Read(s.ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("closed with %v", err)
	}
	s = b.socket(t)
	_ = s.c.Write(s.ctx, websocket.MessageBinary, []byte(socketInitialize))
	if _, _, err := s.c.Read(s.ctx); err == nil {
		t.Error("a binary message was taken")
	}
	if n := len(b.server.Sessions()); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// L-1: Shutdown delivers outcomes over a WebSocket as well, and closes it.
func TestWebSocketShutdown(t *testing.T) {
	b := newBench(t, nil)
	s := b.socket(t)
	s.send(socketInitialize)
	s.expect("serverInfo")
	s.expect("ide/contextUpdate")
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"x"}}}`, b.dir+"/a"))
	s.expect(`"result"`)
	go func() {
		b.registry.Shut()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = b.server.Shutdown(ctx)
	}()
	s.expect("ide/diffRejected")
	if _, _, err := s.c.Read(s.ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("closed with %v", err)
	}
}
