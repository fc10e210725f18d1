package e2e

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// A portThief listens at a port that a companion has left, as another user where that can be had.
type portThief struct {
	origin string
	server *http.Server

	mu     sync.Mutex // guards what follows
	heard  []string   // lines of requests' headers, and messages
	dials  int
	victim string // the origin of a companion that everything is passed on to; "" for none
}

// stealPort binds the port of a companion that has ended.
func stealPort(t *testing.T, origin string) *portThief {
	t.Helper()
	addr := strings.TrimPrefix(origin, "http://")
	th := &portThief{origin: origin}
	var ln net.Listener
	bind := func() {
		for deadline := time.Now().Add(second(20)); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			var err error
			if ln, err = net.Listen("tcp4", addr); err == nil {
				return
			}
		}
	}
	if !usertest.Do(t, bind) {
		bind()
	}
	if ln == nil {
		t.Fatalf("the thief does not get %s", addr)
	}
	th.server = &http.Server{Handler: http.HandlerFunc(th.serve), ReadHeaderTimeout: second(20)}
	go func() { _ = th.server.Serve(ln) }()
	t.Cleanup(th.letGo)
	return th
}

func (th *portThief) letGo() { _ = th.server.Close() }

func (th *portThief) note(what string) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.heard = append(th.heard, what)
}

func (th *portThief) serve(w http.ResponseWriter, r *http.Request) {
	for name, values := range r.Header {
		th.note(name + ": " + strings.Join(values, " "))
	}
	page, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"pollux.v2", "pollux.v1"}, InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer page.CloseNow()
	th.mu.Lock()
	th.dials++
	victim := th.victim
	th.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), second(10))
	defer cancel()
	if victim != "" {
		companion, _, err := webtest.Dial(victim, victim)
		if err != nil {
			return
		}
		defer companion.CloseNow()
		go func() {
			defer cancel()
			for {
				kind, b, err := companion.Read(ctx)
				if err != nil || page.Write(ctx, kind, b) != nil {
					return
				}
			}
		}()
		th.pass(ctx, page, companion)
		return
	}
	_ = page.Write(ctx, websocket.MessageText, []byte(`{"nonce":"AAAA","proof":"AAAA","key":"AAAA"}`))
	th.pass(ctx, page, nil)
}

// pass notes what the page says, and passes it on if there is somebody to.
func (th *portThief) pass(ctx context.Context, page, to *websocket.Conn) {
	for {
		kind, b, err := page.Read(ctx)
		if err != nil {
			return
		}
		th.note(string(b))
		if to != nil && to.Write(ctx, kind, b) != nil {
			return
		}
	}
}

// dialled waits until the page has come so many times.
func (th *portThief) dialled(t *testing.T, times int) []string {
	t.Helper()
	for deadline := time.Now().Add(second(60)); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		th.mu.Lock()
		dials, heard := th.dials, append([]string(nil), th.heard...)
		th.mu.Unlock()
		if dials > times { // the one before has said all that it will
			return heard
		}
	}
	t.Fatal("the page does not come")
	return nil
}

// harmless fails when the thief has heard the key, or more than the first message of proofs.
func harmless(t *testing.T, heard []string, key string) (messages []string) {
	t.Helper()
	for _, what := range heard {
		if strings.Contains(what, key) {
			t.Errorf("the thief has the key: %q", what)
		}
		if strings.HasPrefix(what, "Sec-Websocket-Protocol:") && what != "Sec-Websocket-Protocol: pollux.v2" {
			t.Errorf("the thief was told more: %q", what)
		}
		if !strings.HasPrefix(what, "{") {
			continue
		}
		messages = append(messages, what)
		var hello map[string]string
		if json.Unmarshal([]byte(what), &hello) != nil || len(hello) != 2 || hello["id"] == "" || hello["nonce"] == "" {
			t.Errorf("the thief was told %q", what)
		}
	}
	if len(messages) == 0 {
		t.Error("the page said nothing at all")
	}
	return messages
}

// TestPortThief: another user binds the port of a companion that was killed, and the page dials it. They get nothing that opens
// anything, neither by replaying it to the next companion nor by passing it on to one at another port; the page
// comes back by itself when its companion does (A-5, §11.2).
func TestPortThief(t *testing.T) {
	peers.Need(t, peers.Chromium)
	t.Parallel()
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	c := b.serve()
	d := b.desk(c)
	const stored = `sessionStorage.getItem("pollux.key") ?? ""`
	key := browser.Eval[string](d.Page, stored)
	if len(key) != 43 {
		t.Fatalf("the page keeps %q", key)
	}
	d.Expect("WebSocket")
	d.Expect("net::ERR_")

	c.end(syscall.SIGKILL)
	th := stealPort(t, c.origin())
	heard := harmless(t, th.dialled(t, 2), key)
	d.WaitText(browser.ID("banner"), "was told nothing")
	if left := browser.Eval[string](d.Page, stored); left != "" {
		t.Errorf("a page that the thief serves would find the key in the tab: %q", left)
	}
	th.letGo()

	again := b.serve()
	if again.origin() != c.origin() {
		t.Fatalf("the page moved from %s to %s", c.origin(), again.origin())
	}
	d.online()
	if next := browser.Eval[string](d.Page, stored); next == key || len(next) != 43 {
		t.Error("the new start has no key of its own")
	}
	for _, hello := range heard {
		conn, _, err := webtest.Dial(again.origin(), again.origin())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []string{hello, hello, `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"clientId":"thief"}}`} {
			_ = conn.Write(t.Context(), websocket.MessageText, []byte(m))
		}
		_, _, _ = conn.Read(t.Context()) // the companion's proof
		if _, answer, err := conn.Read(t.Context()); websocket.CloseStatus(err) != 4401 {
			t.Errorf("a replay: %q, %v", answer, err)
		}
		conn.CloseNow()
	}

	key = browser.Eval[string](d.Page, stored)
	again.end(syscall.SIGKILL)
	th = stealPort(t, c.origin())
	elsewhere := b.serve() // the port is taken
	if elsewhere.origin() == c.origin() {
		t.Fatal("two listen at one port")
	}
	th.mu.Lock()
	th.victim = elsewhere.origin()
	th.mu.Unlock()
	before := len(th.dialled(t, 0))
	harmless(t, th.dialled(t, 3)[before:], key)
	if state := browser.Eval[string](d.Page, `document.querySelector("[data-testid=status-connection]").dataset.state`); state == "open" {
		t.Error("the page speaks through the thief")
	}
}
