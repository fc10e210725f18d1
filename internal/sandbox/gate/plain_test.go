package gate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestPlainHTTP: no request reaches another site of the same server, on a direct connection to an allowed host or
// through a proxy tunnel (SPEC E-2).
func TestPlainHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "served %s %s", r.Host, r.URL.Path)
	}))
	defer server.Close()
	g := newTestGate(t, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}, "example.com", "ssh://git.org:22")
	for name, test := range map[string]struct {
		send string
		want []string // in the answer, in this order
	}{
		"the host":                         {"GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n", []string{"200 OK", "served example.com /a"}},
		"with its port":                    {"GET /a HTTP/1.1\r\nHost: EXAMPLE.com.:80\r\n\r\n", []string{"served example.com /a"}},
		"an old program":                   {"GET /a HTTP/1.0\r\n\r\n", []string{"served example.com /a"}},
		"another host":                     {"GET /a HTTP/1.1\r\nHost: evil.com\r\n\r\n", []string{"403"}},
		"another host in the second":       {"GET /a HTTP/1.1\r\nHost: example.com\r\n\r\nGET /b HTTP/1.1\r\nHost: evil.com\r\n\r\n", []string{"served example.com /a", "403"}},
		"another host in the address":      {"GET http://evil.com/a HTTP/1.1\r\nHost: example.com\r\n\r\n", []string{"403"}},
		"two hosts":                        {"GET /a HTTP/1.1\r\nHost: example.com\r\nHost: evil.com\r\n\r\n", []string{"400"}},
		"a folded header":                  {"GET /a HTTP/1.1\r\nX: y\r\n Host: evil.com\r\nHost: example.com\r\n\r\n", []string{"served example.com /a"}},
		"smuggled by two lengths":          {"POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: evil.com\r\n\r\n", []string{"served example.com /a", "403"}},
		"an empty line first":              {"\r\nGET /a HTTP/1.1\r\nHost: evil.com\r\n\r\n", []string{"400"}},
		"a tunnel in it":                   {"CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n", []string{"400"}},
		"HTTP/2 at once":                   {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []string{"HTTP/1.1"}},
		"a forwarded host is the server's": {"GET /a HTTP/1.1\r\nHost: evil.com\r\nX-Forwarded-Host: example.com\r\n\r\n", []string{"403"}},
		"a user in the host":               {"GET /a HTTP/1.1\r\nHost: example.com@evil.com\r\n\r\n", []string{"40"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := relayed(t, g, "example.com", 80, test.send)
			at := 0
			for _, want := range test.want {
				i := strings.Index(answer[at:], want)
				if i < 0 {
					t.Fatalf("%q does not hold %q", answer, want)
				}
				at += i
			}
			if strings.Contains(answer, "served evil") {
				t.Errorf("another site answered: %q", answer)
			}
		})
	}
	denied := false
	for _, d := range g.Close() {
		denied = denied || d.Host == "evil.com" && d.Port == 80 && strings.Contains(d.Why, "example.com")
	}
	if !denied {
		t.Error("the refusal is not noted")
	}
}

// relayed sends bytes through a relay to a contact, and returns the whole answer.
func relayed(t *testing.T, g *Gate, name string, port int, send string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, ok := g.contact(name, port, false)
	if !ok {
		t.Fatalf("%s:%d is not allowed", name, port)
	}
	out, err := g.connect(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); defer conn.Close(); g.relay(conn, out, c) }()
	if _, err := io.WriteString(client, send); err != nil {
		t.Fatal(err)
	}
	_ = client.SetReadDeadline(time.Now().Add(time.Minute))
	var answer strings.Builder
	r := bufio.NewReader(client)
	for range strings.Count(send, " HTTP/") {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			break // the connection was closed
		}
		body, _ := io.ReadAll(resp.Body)
		fmt.Fprintf(&answer, "%s %s %s\n", resp.Proto, resp.Status, body)
	}
	client.Close()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the relay does not end")
	}
	return answer.String()
}
