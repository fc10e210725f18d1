package web_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
)

// codeOf is the code of an address.
func codeOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Fragment, "code=")
}

func dial(t *testing.T, origin string) *websocket.Conn {
	t.Helper()
	conn, _, err := webtest.Dial(origin, origin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	return conn
}

// SPEC §11.2, A-5: a code lets one page in, once; a wrong code lets no page in.
func TestCodeIsExchanged(t *testing.T) {
	b := newBench(t)
	address := b.address()
	origin := b.origin()
	code := codeOf(t, address)
	for name, bad := range map[string]string{"none": "", "another": base64.RawURLEncoding.EncodeToString(make([]byte, 32)), "cut": code[:40]} {
		if _, err := webtest.Prove(dial(t, origin), origin, bad); websocket.CloseStatus(err) != 4401 {
			t.Errorf("%s: %v", name, err)
		}
	}
	key, err := webtest.Prove(dial(t, origin), origin, code)
	if err != nil || key == code {
		t.Fatalf("%v", err)
	}
	if _, err := webtest.Prove(dial(t, origin), origin, code); websocket.CloseStatus(err) != 4401 {
		t.Errorf("again: %v", err)
	}
	webtest.Connect(t, origin, key).Call("ping", nil, nil)
}

// SPEC §11.2, A-3: only the page itself may connect.
func TestSocketOrigins(t *testing.T) {
	b := newBench(t)
	origin := b.origin()
	for _, foreign := range []string{"", "http://evil.example", "null"} {
		conn, status, err := webtest.Dial(origin, foreign)
		if err == nil {
			conn.CloseNow()
			t.Fatalf("Origin %q was let in", foreign)
		}
		if status != http.StatusForbidden {
			t.Errorf("Origin %q: %v", foreign, err)
		}
	}
	if b.server.Pages() != 0 {
		t.Errorf("%d pages", b.server.Pages())
	}
}

// A page of an older pollux, which sends a token, is told that it need not try again.
func TestOldPageIsDenied(t *testing.T) {
	b := newBench(t)
	origin := b.origin()
	for protocols, want := range map[string]websocket.StatusCode{"pollux.v1 token.x": 4401, "other": websocket.StatusProtocolError} {
		conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(origin, "http")+"/ws", &websocket.DialOptions{
			HTTPHeader: http.Header{"Origin": {origin}}, Subprotocols: strings.Fields(protocols),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = conn.Read(t.Context())
		if got := websocket.CloseStatus(err); got != want {
			t.Errorf("%s: %v", protocols, err)
		}
		conn.CloseNow()
	}
}

// SPEC: a resumed companion knows the pages of the one before, and each start has a key of its own.
func TestKeySurvives(t *testing.T) {
	first := newBench(t)
	_, old := webtest.Login(t, first.address())
	second := newBench(t, func(o *attach.PageOptions) { o.Keys = first.server.Keys() })
	key, err := webtest.Prove(dial(t, second.origin()), second.origin(), old)
	if err != nil || key == old {
		t.Fatalf("%v; a new key: %v", err, key != old)
	}
	third := newBench(t, func(o *attach.PageOptions) { o.Keys = second.server.Keys()[:1] })
	webtest.Connect(t, third.origin(), key).Call("ping", nil, nil)
	if _, err := webtest.Prove(dial(t, third.origin()), third.origin(), old); websocket.CloseStatus(err) != 4401 {
		t.Errorf("the key of a start that is forgotten: %v", err)
	}
	// A code dies with its companion.
	code := codeOf(t, first.address())
	if _, err := webtest.Prove(dial(t, second.origin()), second.origin(), code); websocket.CloseStatus(err) != 4401 {
		t.Errorf("a code of the companion before: %v", err)
	}
}

// talk sends messages on a new WebSocket and returns what came, and how it ended.
func talk(t *testing.T, origin string, messages ...string) (heard []string, status websocket.StatusCode) {
	t.Helper()
	conn := dial(t, origin)
	ctx, cancel := context.WithTimeout(t.Context(), webtest.Patience)
	defer cancel()
	for _, m := range messages {
		_ = conn.Write(ctx, websocket.MessageText, []byte(m))
	}
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return heard, websocket.CloseStatus(err)
		}
		heard = append(heard, string(b))
	}
}

// SPEC A-5: whoever knows no secret hears nothing but a proof that is good for nothing else, whatever they send.
func TestStrangersProofs(t *testing.T) {
	b := newBench(t)
	origin, key := webtest.Login(t, b.address())
	secret, _ := base64.RawURLEncoding.DecodeString(key)
	id := base64.RawURLEncoding.EncodeToString(webtest.Mac(secret, "pollux.v2\nid"))
	nonce := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	hello := `{"id":"` + id + `","nonce":"` + nonce + `"}`
	echo, _ := talk(t, origin, hello, `{}`)
	var answer struct{ Nonce, Proof string }
	if len(echo) != 1 || json.Unmarshal([]byte(echo[0]), &answer) != nil {
		t.Fatalf("%q", echo)
	}
	for name, messages := range map[string][]string{
		"the id alone":         {hello, `{"proof":""}`},
		"its proof, reflected": {hello, `{"proof":"` + answer.Proof + `"}`},
		"a call first":         {`{"jsonrpc":"2.0","id":1,"method":"hello","params":{"clientId":"c"}}`},
		"a call for a proof":   {hello, `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"clientId":"c"}}`},
		"no JSON":              {"x"},
		"null":                 {"null", "null"},
		"a nonce with lines":   {`{"id":"` + id + `","nonce":"a\nb"}`},
		"an empty nonce":       {`{"id":"` + id + `","nonce":""}`},
		"a long nonce":         {`{"id":"` + id + `","nonce":"` + nonce + nonce + `"}`},
	} {
		heard, status := talk(t, origin, messages...)
		if status != 4401 || len(heard) > 1 || strings.Contains(strings.Join(heard, ""), "jsonrpc") || slices.ContainsFunc(heard, func(s string) bool { return strings.Contains(s, "key") }) {
			t.Errorf("%s: %v %q", name, status, heard)
		}
	}
	if heard, _ := talk(t, origin, strings.Repeat(" ", 1<<20)); len(heard) != 0 {
		t.Errorf("a large message: %q", heard)
	}
	if b.server.Pages() != 0 {
		t.Errorf("%d pages", b.server.Pages())
	}
	webtest.Connect(t, origin, key).Call("ping", nil, nil)
}

// SPEC A-5: what a page said once opens nothing later.
func TestReplay(t *testing.T) {
	b := newBench(t)
	origin, key := webtest.Login(t, b.address())
	var said []string
	tap := relay(t, origin, func(fromPage bool, msg string) {
		if fromPage {
			said = append(said, msg)
		}
	})
	if _, err := webtest.Prove(dial(t, tap), origin, key); err != nil { // as if the page believed to be at the right port
		t.Fatal(err)
	}
	if heard, status := talk(t, origin, said...); status != 4401 || len(heard) != 1 {
		t.Errorf("%v %q", status, heard)
	}
}

// SPEC A-5: a thief at the page's old port who passes everything on to the companion at its new one gets no proof, nor does
// the page tell them one; the same for a code.
func TestRelayA5(t *testing.T) {
	b := newBench(t)
	origin, key := webtest.Login(t, b.address())
	for name, secret := range map[string]string{"key": key, "code": codeOf(t, b.address())} {
		var said []string
		thief := relay(t, origin, func(fromPage bool, msg string) {
			if fromPage {
				said = append(said, msg)
			}
		})
		if _, err := webtest.Prove(dial(t, thief), thief, secret); !errors.Is(err, webtest.ErrImpostor) {
			t.Errorf("%s: %v", name, err)
		}
		if len(said) != 1 || strings.Contains(said[0], secret) {
			t.Errorf("%s: the thief heard %q", name, said)
		}
		if _, err := webtest.Prove(dial(t, origin), origin, secret); err != nil {
			t.Errorf("%s: the thief has used it up: %v", name, err)
		}
	}
}

// relay passes WebSockets on to origin, both ways, and shows what it hears.
func relay(t *testing.T, origin string, hear func(fromPage bool, msg string)) (thief string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"pollux.v2"}, InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer page.CloseNow()
		companion, _, err := webtest.Dial(origin, origin)
		if err != nil {
			return
		}
		defer companion.CloseNow()
		pass := func(from, to *websocket.Conn, fromPage bool) {
			for {
				kind, b, err := from.Read(r.Context())
				if err != nil {
					return
				}
				hear(fromPage, string(b))
				if to.Write(r.Context(), kind, b) != nil {
					return
				}
			}
		}
		go pass(companion, page, false)
		pass(page, companion, true)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// SPEC: connections that prove nothing are bounded in number and time, and keep no honest page out.
func TestSilentSockets(t *testing.T) {
	b := newBench(t)
	origin, key := webtest.Login(t, b.address())
	var silent []*websocket.Conn
	for range 200 {
		silent = append(silent, dial(t, origin))
	}
	watch := pace.Start(t)
	webtest.Connect(t, origin, key).Call("ping", nil, nil)
	if took := watch.Took(); took > pace.Slack*time.Second {
		t.Errorf("an honest page waited %v", took)
	}
	for _, conn := range silent {
		ctx, cancel := context.WithTimeout(t.Context(), webtest.Patience)
		if _, _, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
			t.Error("a silent connection stays")
		}
		cancel()
	}
}

// A page proves itself for one origin, so every other name of it leads there.
func TestOneOrigin(t *testing.T) {
	b := newBench(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(b.origin(), "http://"))
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.origin()+"/", nil)
	req.Host = "localhost:" + port
	rsp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	rsp.Body.Close()
	if rsp.StatusCode != http.StatusTemporaryRedirect || rsp.Header.Get("Location") != b.origin()+"/" {
		t.Errorf("%s to %q", rsp.Status, rsp.Header.Get("Location"))
	}
}

// SPEC §11.1: a key or code alone lets nobody in whom Options.Decides refuses, and a code stays good for the user. A page that came in
// before decides nothing once it is refused; it may still look.
func TestPageOfAnAgent(t *testing.T) {
	var refuse atomic.Bool
	b := newBench(t, func(o *attach.PageOptions) {
		o.Decides = func(_ context.Context, page, server netip.AddrPort) error {
			if !page.Addr().IsLoopback() || !server.Addr().IsLoopback() || page == server {
				return fmt.Errorf("asked about %v at %v", page, server)
			}
			if refuse.Load() {
				return errors.New("this was opened by an agent")
			}
			return nil
		}
	})
	_, key := webtest.Login(t, b.address())
	page := webtest.Connect(t, b.origin(), key)
	page.Call("hello", map[string]any{"clientId": "a"}, nil)
	path := b.write("a.txt", "old\n")
	d := b.propose(path, "old\n", "new\n")
	code := codeOf(t, b.address())

	refuse.Store(true)
	for name, secret := range map[string]string{"the key": key, "a code": code} {
		_, err := webtest.Prove(dial(t, b.origin()), b.origin(), secret)
		if websocket.CloseStatus(err) != 4403 || !strings.Contains(err.Error(), "by an agent") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for method, params := range map[string]map[string]any{
		"diff/accept": {"id": d.ID()}, "diff/reject": {"id": d.ID()}, "diff/edit": {"id": d.ID(), "content": "x"}, "diff/resolve": {"id": d.ID()},
		"policy/set": {"mode": "accept"}, "context/pause": {"paused": false}, "agent/mention": {"path": path}, "history/undo": {"id": d.ID()},
	} {
		if err := page.ExpectError(-32015, method, params); !strings.Contains(err.Message, "by an agent") {
			t.Errorf("%s: %v", method, err)
		}
	}
	page.Call("diff/read", map[string]any{"id": d.ID()}, nil)
	if _, over := d.Outcome(); over {
		t.Error("it was decided")
	}

	refuse.Store(false)
	if _, err := webtest.Prove(dial(t, b.origin()), b.origin(), code); err != nil {
		t.Errorf("the user's code: %v", err)
	}
	page.Call("diff/accept", map[string]any{"id": d.ID()}, nil)
}
