// Package webtest is a page without a browser: it speaks the page protocol
// over a real WebSocket, for tests of whatever stands behind it.
package webtest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
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

// A note is one notification that the page has heard.
type note struct {
	Method string
	Params json.RawMessage
}

// A Page is one fake browser tab. Its methods fail the test when they do not
// get what they expect; they may be called from any goroutine of the test but Fatal's rules apply.
type Page struct {
	T testing.TB

	client *jrpc2.Client
	conn   *websocket.Conn

	mu    sync.Mutex
	flush func(id string) *string
	ask   func(title, message string, choices []string) *string
	save  func(path string) (saved bool, why string)
	notes []note // heard and not expected yet
	heard chan struct{}
	gone  chan struct{} // closed with the connection
}

// Login exchanges the one-time code of a page's address for the page's key.
func Login(t testing.TB, address string) (origin, key string) {
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
	conn, _, err := Dial(origin, origin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if key, err = Prove(conn, origin, code); err != nil {
		t.Fatalf("the address is not taken: %v", err)
	}
	return origin, key
}

// Dial opens a WebSocket as a page of that origin would, and says nothing; status is that of the answer, 0 when there was none.
func Dial(server, origin string) (conn *websocket.Conn, status int, err error) {
	return dial(http.DefaultClient, server, origin)
}

func dial(client *http.Client, server, origin string) (conn *websocket.Conn, status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	h := http.Header{}
	if origin != "" {
		h.Set("Origin", origin)
	}
	conn, rsp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(server, "http")+"/ws", &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: h, Subprotocols: []string{"pollux.v2"},
	})
	if rsp != nil {
		status = rsp.StatusCode
		if err != nil && rsp.Body != nil {
			_ = rsp.Body.Close()
		}
	}
	return conn, status, err
}

// Enter opens a WebSocket as a page that has a key, and proves it.
func Enter(origin, key string) (*websocket.Conn, error) {
	return enter(http.DefaultClient, origin, key)
}

func enter(client *http.Client, origin, key string) (*websocket.Conn, error) {
	conn, _, err := dial(client, origin, origin)
	if err != nil {
		return nil, err
	}
	if _, err = Prove(conn, origin, key); err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return conn, nil
}

// ErrImpostor: what answered does not know the page's secret.
var ErrImpostor = errors.New("the listener does not prove itself")

// Prove does what a page does at the beginning of a WebSocket (SPEC A-5): it proves that it knows secret, a code or a key in
// base64, has the same proved to it, and gets the newest key. origin is where it believes to be.
func Prove(conn *websocket.Conn, origin, secret string) (key string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	known, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil {
		return "", err
	}
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	nonce := base64.RawURLEncoding.EncodeToString(b)
	id := Mac(known, "pollux.v2\nid")
	var answer struct{ Nonce, Proof string }
	if err := exchange(ctx, conn, map[string]string{"id": base64.RawURLEncoding.EncodeToString(id), "nonce": nonce}, &answer); err != nil {
		return "", err
	}
	mac := func(role string) []byte {
		return Mac(known, strings.Join([]string{"pollux.v2", role, origin, nonce, answer.Nonce}, "\n"))
	}
	if answer.Proof != base64.RawURLEncoding.EncodeToString(mac("companion")) {
		return "", ErrImpostor
	}
	var welcome struct{ Key string }
	if err := exchange(ctx, conn, map[string]string{"proof": base64.RawURLEncoding.EncodeToString(mac("page"))}, &welcome); err != nil {
		return "", err
	}
	sealed, err := base64.RawURLEncoding.DecodeString(welcome.Key)
	if err != nil || len(sealed) != 32 {
		return "", fmt.Errorf("a key of %d bytes: %v", len(sealed), err)
	}
	subtle.XORBytes(sealed, sealed, mac("key"))
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Mac is HMAC-SHA256.
func Mac(secret []byte, text string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func exchange(ctx context.Context, conn *websocket.Conn, msg, answer any) error {
	b, err := json.Marshal(msg)
	if err == nil {
		err = conn.Write(ctx, websocket.MessageText, b)
	}
	if err != nil {
		return err
	}
	_, b, err = conn.Read(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, answer)
}

// Open logs in with a fresh address and connects a page that has said hello.
// It is closed when the test ends.
func Open(t testing.TB, address, clientID string) *Page {
	t.Helper()
	origin, key := Login(t, address)
	p := Connect(t, origin, key)
	p.Call("hello", map[string]any{"clientId": clientID}, nil)
	return p
}

// Connect connects a page that has a key and has said nothing yet.
func Connect(t testing.TB, origin, key string) *Page {
	t.Helper()
	return ConnectBy(t, http.DefaultClient, origin, key)
}

// ConnectBy is Connect by a client of the test's, whose connections may come from another process.
func ConnectBy(t testing.TB, client *http.Client, origin, key string) *Page {
	t.Helper()
	conn, err := enter(client, origin, key)
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

// OnFlush sets what answers diff/flush: the text that is not sent yet, nil for none. A nil function has none.
func (p *Page) OnFlush(f func(id string) *string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush = f
}

// OnAsk sets what answers questions; a nil choice, or a nil function, sends them away. One may come as soon as the page has said
// hello: a test that expects it connects, sets its answer and then says hello.
func (p *Page) OnAsk(f func(title, message string, choices []string) *string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ask = f
}

// OnSave sets what answers that an open file is to be saved; a nil function has no file open.
func (p *Page) OnSave(f func(path string) (saved bool, why string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.save = f
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
		if n, ok := p.pop(method); ok {
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
	if n, ok := p.pop(method); ok {
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

func (p *Page) pop(method string) (note, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, n := range p.notes {
		if n.Method == method {
			p.notes = append(p.notes[:i:i], p.notes[i+1:]...)
			return n, true
		}
	}
	return note{}, false
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
	p.notes = append(p.notes, note{req.Method(), raw})
	p.mu.Unlock()
	select {
	case p.heard <- struct{}{}:
	default:
	}
}

func (p *Page) answer(_ context.Context, req *jrpc2.Request) (any, error) {
	p.mu.Lock()
	flush, ask, save := p.flush, p.ask, p.save
	p.mu.Unlock()
	switch req.Method() {
	case "file/saveOpen":
		var in struct{ Path string }
		if err := req.UnmarshalParams(&in); err != nil {
			return nil, err
		}
		if save == nil {
			return map[string]any{"open": false, "saved": false}, nil
		}
		saved, why := save(in.Path)
		return map[string]any{"open": true, "saved": saved, "why": why}, nil
	case "diff/flush":
		var in struct{ ID string }
		if err := req.UnmarshalParams(&in); err != nil || flush == nil {
			return map[string]any{"text": nil}, err
		}
		return map[string]any{"text": flush(in.ID)}, nil
	case "ask":
		var in struct {
			Title, Message string
			Choices        []string
		}
		if err := req.UnmarshalParams(&in); err != nil || ask == nil {
			return map[string]any{"choice": nil}, err
		}
		return map[string]any{"choice": ask(in.Title, in.Message, in.Choices)}, nil
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
