package door

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// serve starts a server behind a door and returns its address.
func serve(t *testing.T, o Options, h http.HandlerFunc) (*Door, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := New(o)
	if err := d.Admit(l.Addr(), "host.docker.internal"); err != nil {
		t.Fatal(err)
	}
	s := d.Server(h)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return d, l.Addr().String()
}

// servePipes is serve without descriptors, for more connections than a
// process may have, with what makes them.
func servePipes(t *testing.T, o Options, h http.HandlerFunc) (*Door, func() net.Conn) {
	t.Helper()
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	d := New(o)
	if err := d.Admit(l.Addr()); err != nil {
		t.Fatal(err)
	}
	s := d.Server(h)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return d, func() net.Conn {
		client, server := net.Pipe()
		l.conns <- server
		t.Cleanup(func() { client.Close() })
		return client
	}
}

// exchange sends raw bytes and returns what comes until the other side closes.
func exchange(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(conn, request)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// who is let in, decided on headers alone; a refusal comes at once
// although a small body is outstanding, and ends the connection.
func TestVerdicts(t *testing.T) {
	var calls atomic.Int32
	_, addr := serve(t, Options{Credential: Bearer("secret"), Origins: []string{"http://page.test:1"}},
		func(w http.ResponseWriter, _ *http.Request) { calls.Add(1); w.Header().Set("Connection", "close") })
	_, port, _ := net.SplitHostPort(addr)
	const auth = "Authorization: Bearer secret\r\n"
	for _, test := range []struct{ host, headers, want string }{
		{addr, auth, "200"},
		{"localhost:" + port, auth, "200"},
		{"LOCALHOST:" + port, "Authorization: bearer secret\r\n", "200"},
		{"host.docker.internal:" + port, auth, "200"},
		{addr, auth + "Origin: http://" + addr + "\r\n", "200"},
		{addr, auth + "Origin: http://page.test:1\r\n", "200"},
		{addr, auth + "Origin: https://" + addr + "\r\n", "403"},
		{addr, auth + "Origin: null\r\n", "403"},
		{addr, auth + "Origin: http://page.test:1\r\nOrigin: http://x\r\n", "403"},
		{"localhost", auth, "403"},
		{"localhost:1", auth, "403"},
		{"attacker.example:" + port, auth, "403"},
		{addr, "", "401"},
		{addr, "Authorization: Bearer secre\r\n", "401"},
		{addr, "Authorization: Bearer \r\n", "401"},
		{addr, "Authorization: Basic secret\r\n", "401"},
		{addr, auth + auth, "401"},
	} {
		watch := pace.Start(t)
		length := "Content-Length: 5\r\n" // which do not come
		if test.want == "200" {
			length = ""
		}
		got := exchange(t, addr, "POST / HTTP/1.1\r\nHost: "+test.host+"\r\n"+test.headers+length+"\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+test.want) {
			t.Errorf("%+v: %.40q", test, got)
		}
		_, body, _ := strings.Cut(got, "\r\n\r\n")
		if test.want != "200" && (body != "" || !strings.Contains(got, "Connection: close") || watch.Took() > pace.Slack*time.Second) {
			t.Errorf("%+v: refusal %q after %v", test, got, watch.Took())
		}
	}
	if calls.Load() != 6 {
		t.Errorf("%d requests got through", calls.Load())
	}
}

// no token at all lets nobody in.
// no method and no target has a way around the door, nor the one request that
// net/http answers without asking a handler.
func TestEveryTarget(t *testing.T) {
	_, addr := serve(t, Options{Credential: Bearer("secret")}, func(http.ResponseWriter, *http.Request) { t.Error("it got through") })
	for _, line := range []string{"OPTIONS *", "OPTIONS /", "TRACE /", "CONNECT " + addr, "PRI *", "GET http://" + addr + "/", "GET //", "GET /a/../b", "BREW /"} {
		for host, want := range map[string]string{addr: "401", "attacker.example": "403"} {
			if strings.Contains(line, addr) {
				want = "401" // net/http takes the host from the target, as it must
			}
			if got := exchange(t, addr, line+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
				t.Errorf("%s for %s: %q; want %s", line, host, got, want)
			}
		}
	}
}

func TestEmptyTokenRefuses(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer ")
	if Bearer("")(r) {
		t.Error("let in")
	}
}

// T-8: never on every interface.
func TestUnspecifiedAddress(t *testing.T) {
	for _, ip := range []string{"0.0.0.0", "::"} {
		if err := New(Options{}).Admit(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1}); err == nil {
			t.Errorf("%s was admitted", ip)
		}
	}
}

// headers have a bound, a body that is announced too large is not read.
func TestBounds(t *testing.T) {
	_, addr := serve(t, Options{TooLarge: `{"error":"too large"}`}, func(http.ResponseWriter, *http.Request) {})
	head := "POST / HTTP/1.1\r\nHost: " + addr + "\r\n"
	if got := exchange(t, addr, head+"X: "+strings.Repeat("x", maxHeader+1)+"\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 431") {
		t.Errorf("headers: %.40q", got)
	}
	got := exchange(t, addr, head+"Content-Length: 67108865\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 413") || !strings.HasSuffix(got, `{"error":"too large"}`) {
		t.Errorf("body: %q", got)
	}
}

// a panic ends its request and nothing else, and says where it was.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	_, addr := serve(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("something")
		}
	})
	request := func(path string) string {
		return exchange(t, addr, "GET "+path+" HTTP/1.1\r\nHost: "+addr+"\r\nConnection: close\r\n\r\n")
	}
	if got := request("/panic"); !strings.HasPrefix(got, "HTTP/1.1 500") {
		t.Errorf("%q", got)
	}
	if got := request("/"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("afterwards: %q", got)
	}
	if !strings.Contains(log.String(), "something") || !strings.Contains(log.String(), "door_test.go") {
		t.Errorf("log: %s", log.String())
	}
}

// of the connections that have not proven themselves, the oldest is closed; a proven
// connection stays, however long it is silent.
func TestStrangers(t *testing.T) {
	d, dial := servePipes(t, Options{Credential: func(*http.Request) bool { return true }}, func(http.ResponseWriter, *http.Request) {})
	addr := pipeAddr{}.String()
	known := dial()
	_, _ = io.WriteString(known, "GET / HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	answer := make([]byte, 512)
	if _, err := known.Read(answer); err != nil {
		t.Fatal(err)
	}
	oldest := dial()
	for range MaxStrangers {
		dial()
	}
	_ = oldest.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := oldest.Read(answer); err == nil || errors.Is(err, errTimeout(err)) {
		t.Errorf("the oldest stranger: %v", err)
	}
	_, _ = io.WriteString(known, "GET / HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	if _, err := known.Read(answer); err != nil {
		t.Errorf("the known one: %v", err)
	}
	d.conns.mu.Lock()
	defer d.conns.mu.Unlock()
	if n := d.conns.strangers.Len(); n > MaxStrangers {
		t.Errorf("%d strangers", n)
	}
}

// a door that asks for no credential holds few connections, however many requests are
// made on them: anybody on the machine can make those.
func TestOpenDoorIsBounded(t *testing.T) {
	d, dial := servePipes(t, Options{}, func(http.ResponseWriter, *http.Request) {})
	for range MaxStrangers + 20 {
		conn := dial()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+pipeAddr{}.String()+"\r\n\r\n")
		if _, err := conn.Read(make([]byte, 512)); err != nil {
			t.Fatal(err)
		}
	}
	open := func() int {
		d.conns.mu.Lock()
		defer d.conns.mu.Unlock()
		return len(d.conns.open)
	}
	for deadline := time.Now().Add(30 * time.Second); open() > MaxStrangers; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, want %d at most", open(), MaxStrangers)
		}
	}
}

// errTimeout is err when it is a time-out, else an error that it is not.
func errTimeout(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return io.ErrNoProgress
}

// the memory of a body follows what has come, not what is announced,
// and what is over the budget is turned away.
func TestBudget(t *testing.T) {
	b := NewBudget(8 << 20)
	text := `{"a":"` + strings.Repeat("x", 1<<20)
	for _, length := range []int64{int64(len(text)), -1} {
		body, release, err := b.Read(strings.NewReader(text), length, MaxBody)
		if err != nil || string(body) != text {
			t.Fatalf("length %d: %d bytes, %v", length, len(body), err)
		}
		release()
		release() // does nothing the second time
	}
	if left := b.left.Load(); left != 8<<20 {
		t.Errorf("%d left", left)
	}
	_, release, err := b.Read(strings.NewReader(" ["+strings.Repeat("x", 9<<20)), -1, MaxBody)
	release()
	if !errors.Is(err, ErrBusy) {
		t.Errorf("over the budget: %v", err)
	}
	if _, _, err := b.Read(strings.NewReader(""), MaxBody+1, MaxBody); !errors.Is(err, ErrTooLarge) {
		t.Errorf("announced: %v", err)
	}
	big := NewBudget(1 << 30)
	endless := func() io.Reader { return io.MultiReader(strings.NewReader("{"), zeros{}) }
	_, release, err = big.Read(endless(), -1, MaxBody)
	release()
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("not announced: %v", err)
	}
	for _, length := range []int64{MaxBody, -1} { // the largest that is let in, byte for byte
		body, release, err := big.Read(io.LimitReader(endless(), MaxBody), length, MaxBody)
		if err != nil || len(body) != MaxBody || body[0] != '{' || bytes.Count(body, []byte{0}) != MaxBody-1 {
			t.Errorf("length %d: %d bytes, %v", length, len(body), err)
		}
		release()
	}
	for _, first := range []string{"x", strings.Repeat(" ", freeBody)} { // nothing that would become JSON
		read := &counting{Reader: io.MultiReader(strings.NewReader(first), zeros{})}
		if _, _, err := big.Read(read, -1, MaxBody); !errors.Is(err, ErrNotJSON) || read.n > freeBody {
			t.Errorf("%.5q: %v after %d bytes", first, err, read.n)
		}
	}
	if left := big.left.Load(); left != 1<<30 {
		t.Errorf("%d left", left)
	}
	small, release, err := NewBudget(0).Read(strings.NewReader("small"), 5, MaxBody)
	release()
	if string(small) != "small" || err != nil {
		t.Errorf("a small body costs nothing: %q, %v", small, err)
	}
}

type counting struct {
	io.Reader
	n int
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
