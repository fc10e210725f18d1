// Package webtest is a page without a browser: it speaks the page protocol
// over a real WebSocket, for tests of whatever stands behind it.
package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/creachadair/jrpc2"
)

// Patience is how long an expectation waits before the test fails.
const Patience = 30 * time.Second

// A Note is one notification that the page has heard.
type Note struct {
	Method string
	Params json.RawMessage
}

// A Page is one fake browser tab. Its methods fail the test when they do not
// get what they expect; they may be called from any goroutine of the test but Fatal's rules apply.
type Page struct {
	T testing.TB
	// Flush answers the server's diff/flush: the text that is not sent yet, nil for none.
	Flush func(id string) *string
	// Ask answers the server's questions; nil means that they are sent away.
	Ask func(title, message string, choices []string) *string

	client *jrpc2.Client
	conn   *websocket.Conn

	mu    sync.Mutex
	notes []Note // heard and not expected yet
	heard chan struct{}
	gone  chan struct{} // closed with the connection
}

// Login exchanges the one-time code of a page's address for the token.
func Login(t testing.TB, address string) (origin, token string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	code, ok := strings.CutPrefix(u.Fragment, "code=")
	if !ok {
		t.Fatalf("the address has no code: %s", u.Redacted())
	}
	origin = "http://" + u.Host
	status, body := Post(t, origin, origin, fmt.Sprintf(`{"code":%q}`, code))
	if status != http.StatusOK {
		t.Fatalf("POST /session: %d %s", status, body)
	}
	var out struct{ Token string }
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	return origin, out.Token
}

// Post sends a body to /session as a page of the given Origin would ("" sends none).
func Post(t testing.TB, server, origin, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/session", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(rsp.Body)
	return rsp.StatusCode, b.String()
}

// Dial opens a WebSocket as a page of that origin with that token would;
// status is that of the answer, 0 when there was none.
func Dial(server, origin, token string) (conn *websocket.Conn, status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	h := http.Header{}
	if origin != "" {
		h.Set("Origin", origin)
	}
	conn, rsp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(server, "http")+"/ws", &websocket.DialOptions{
		HTTPHeader: h, Subprotocols: []string{"pollux.v1", "token." + token},
	})
	if rsp != nil {
		status = rsp.StatusCode
		if err != nil && rsp.Body != nil {
			_ = rsp.Body.Close()
		}
	}
	return conn, status, err
}

// Open logs in with a fresh address and connects a page that has said hello.
// It is closed when the test ends.
func Open(t testing.TB, address, clientID string) *Page {
	t.Helper()
	origin, token := Login(t, address)
	p := Connect(t, origin, token)
	p.Call("hello", map[string]any{"clientId": clientID}, nil)
	return p
}

// Connect connects a page that has a token and has said nothing yet.
func Connect(t testing.TB, origin, token string) *Page {
	t.Helper()
	conn, _, err := Dial(origin, origin, token)
	if err != nil {
		t.Fatalf("dialling the page's socket: %v", err)
	}
	conn.SetReadLimit(-1)
	p := &Page{T: t, conn: conn, heard: make(chan struct{}, 1), gone: make(chan struct{})}
	p.client = jrpc2.NewClient(socket{conn}, &jrpc2.ClientOptions{
		OnNotify: p.note, OnCallback: p.answer, OnStop: func(*jrpc2.Client, error) { close(p.gone) },
	})
	t.Cleanup(p.Leave)
	return p
}

// Leave breaks the connection, as closing the tab does.
func (p *Page) Leave() {
	_ = p.conn.CloseNow()
	_ = p.client.Close()
}

// Call makes a request and decodes its result into out, unless out is nil.
func (p *Page) Call(method string, params, out any) {
	p.T.Helper()
	if err := p.Try(method, params, out); err != nil {
		p.T.Fatalf("%s: %v", method, err)
	}
}

// Try is Call for a request that may fail.
func (p *Page) Try(method string, params, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*Patience)
	defer cancel()
	rsp, err := p.client.Call(ctx, method, params)
	if err != nil || out == nil {
		return err
	}
	return rsp.UnmarshalResult(out)
}

// ExpectError makes a request that must fail with the given code.
func (p *Page) ExpectError(code int, method string, params any) *jrpc2.Error {
	p.T.Helper()
	err := p.Try(method, params, nil)
	var e *jrpc2.Error
	if !errors.As(err, &e) || int(e.Code) != code {
		p.T.Fatalf("%s: error %v, want code %d", method, err, code)
	}
	return e
}

// Notify sends a notification.
func (p *Page) Notify(method string, params any) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := p.client.Notify(ctx, method, params); err != nil {
		p.T.Fatalf("%s: %v", method, err)
	}
}

// Expect waits for a notification of that method, passing over others (which
// stay to be expected later), and decodes its parameters into out, unless out is nil.
func (p *Page) Expect(method string, out any) {
	p.T.Helper()
	deadline := time.After(Patience)
	for {
		if n, ok := p.take(method); ok {
			if out != nil {
				if err := json.Unmarshal(n.Params, out); err != nil {
					p.T.Fatalf("%s: %v", method, err)
				}
			}
			return
		}
		select {
		case <-p.heard:
		case <-deadline:
			p.T.Fatalf("no %s within %v; heard: %s", method, Patience, p.methods())
		}
	}
}

// ExpectNone makes a round trip, after which everything that was on its way
// has been heard, and fails when a notification of that method was among it.
func (p *Page) ExpectNone(method string) {
	p.T.Helper()
	p.Call("ping", nil, nil)
	if n, ok := p.take(method); ok {
		p.T.Fatalf("unexpected %s %.200s", method, n.Params)
	}
}

// ExpectGone waits until the server has closed the connection.
func (p *Page) ExpectGone() {
	p.T.Helper()
	select {
	case <-p.gone:
	case <-time.After(Patience):
		p.T.Fatal("the connection is still open")
	}
}

func (p *Page) take(method string) (Note, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, n := range p.notes {
		if n.Method == method {
			p.notes = append(p.notes[:i:i], p.notes[i+1:]...)
			return n, true
		}
	}
	return Note{}, false
}

func (p *Page) methods() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, n := range p.notes {
		names = append(names, n.Method)
	}
	return strings.Join(names, ", ")
}

func (p *Page) note(req *jrpc2.Request) {
	var raw json.RawMessage
	_ = req.UnmarshalParams(&raw)
	p.mu.Lock()
	p.notes = append(p.notes, Note{req.Method(), raw})
	p.mu.Unlock()
	select {
	case p.heard <- struct{}{}:
	default:
	}
}

func (p *Page) answer(_ context.Context, req *jrpc2.Request) (any, error) {
	switch req.Method() {
	case "diff/flush":
		var in struct{ ID string }
		if err := req.UnmarshalParams(&in); err != nil || p.Flush == nil {
			return map[string]any{"text": nil}, err
		}
		return map[string]any{"text": p.Flush(in.ID)}, nil
	case "ask":
		var in struct {
			Title, Message string
			Choices        []string
		}
		if err := req.UnmarshalParams(&in); err != nil || p.Ask == nil {
			return map[string]any{"choice": nil}, err
		}
		return map[string]any{"choice": p.Ask(in.Title, in.Message, in.Choices)}, nil
	}
	return nil, jrpc2.Errorf(jrpc2.MethodNotFound, "unknown method %s", req.Method())
}

// A socket is a channel.Channel of jrpc2.
type socket struct{ conn *websocket.Conn }

// Send writes one message.
func (s socket) Send(b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, b)
}

// Recv reads one message.
func (s socket) Recv() ([]byte, error) {
	_, b, err := s.conn.Read(context.Background())
	return b, err
}

// Close ends the connection.
func (s socket) Close() error { return s.conn.CloseNow() }
