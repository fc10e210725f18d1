package gate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
)

// ownProxyAt serves a proxy like a company's: it answers each CONNECT with answer, then echoes. It tells what it was
// asked.
func ownProxyAt(t *testing.T, answer string) (address string, asked chan *http.Request) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked = make(chan *http.Request, 9)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				request, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				asked <- request
				_, _ = io.WriteString(conn, answer)
				_, _ = io.Copy(conn, r)
			}()
		}
	}()
	return l.Addr().String(), asked
}

// With the user's own proxy, an allowed name is asked of that proxy alone. What it refuses, and what leads to a
// private address here, is denied; nothing tells the proxy's password (SPEC S-1).
func TestThroughOwnProxy(t *testing.T) {
	const open, name = "HTTP/1.1 200 Connection established\r\n\r\nearly", "api.example.com"
	for what, test := range map[string]struct {
		answer, scheme string
		lookup         string // what the name leads to on this machine, "" for nothing
		denied         string // part of the reason; "" if it is reached
		unasked        bool
	}{
		"it opens":                        {answer: open, scheme: "http"},
		"it opens, and the name is known": {answer: open, scheme: "http", lookup: "93.184.215.14"},
		"it refuses":                      {answer: "HTTP/1.1 407 secret\r\n\r\n", scheme: "http", denied: "your proxy refuses it: 407 Proxy Authentication Required"},
		"no HTTP":                         {answer: "SSH-2.0-secret\r\n\r\n", scheme: "http", denied: "no answer that could be read"},
		"another kind":                    {answer: open, scheme: "socks5", denied: `your proxy speaks "socks5"`, unasked: true},
		"loopback":                        {answer: open, scheme: "http", lookup: "127.0.0.1", denied: "leads to 127.0.0.1", unasked: true},
		"private":                         {answer: open, scheme: "http", lookup: "10.1.2.3", denied: "leads to 10.1.2.3", unasked: true},
		"metadata, as version 6":          {answer: open, scheme: "http", lookup: "::ffff:169.254.169.254", denied: "leads to 169.254.169.254", unasked: true},
	} {
		t.Run(what, func(t *testing.T) {
			host, err := permission.ParseHost("https://" + name)
			if err != nil {
				t.Fatal(err)
			}
			address, asked := ownProxyAt(t, test.answer)
			g := New(t.Context(), Options{Hosts: []permission.Host{host}, Log: slog.New(slog.DiscardHandler), ProxyOf: func(*http.Request) (*url.URL, error) {
				return &url.URL{Scheme: test.scheme, Host: address, User: url.UserPassword("me", "secret")}, nil
			}})
			g.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
				if test.lookup == "" {
					return nil, errors.New("no such host")
				}
				return []netip.Addr{netip.MustParseAddr(test.lookup)}, nil
			}
			conn, err := g.connect(t.Context(), contact{name: name, port: 443})
			if (err == nil) != (test.denied == "") {
				t.Fatalf("%v", err)
			}
			if err == nil {
				_, writeErr := io.WriteString(conn, " and late")
				got := make([]byte, len("early and late"))
				if _, err := io.ReadFull(conn, got); err != nil || writeErr != nil || string(got) != "early and late" {
					t.Errorf("%q, %v, %v", got, err, writeErr)
				}
				conn.Close()
			}
			all := g.Close()
			if test.denied != "" && (len(all) != 1 || !strings.Contains(all[0].Why, test.denied) || strings.Contains(all[0].Why+err.Error(), "secret")) {
				t.Errorf("%+v, %v", all, err)
			}
			select {
			case r := <-asked:
				if user, password, ok := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth(); test.unasked || r.Method != http.MethodConnect || r.Host != name+":443" || !ok || user != "me" || password != "secret" {
					t.Errorf("asked for %s %s by %q", r.Method, r.Host, user)
				}
			default:
				if !test.unasked {
					t.Error("the proxy was not asked")
				}
			}
		})
	}
}

// Addresses, and what the user's variables except, are contacted directly.
func TestPastOwnProxy(t *testing.T) {
	address, asked := ownProxyAt(t, "HTTP/1.1 200 OK\r\n\r\n")
	echo, _ := ownProxyAt(t, "")
	for name, proxy := range map[string]*url.URL{"127.0.0.1": {Scheme: "http", Host: address}, "localhost": nil} {
		g := New(t.Context(), Options{Log: slog.New(slog.DiscardHandler), ProxyOf: func(*http.Request) (*url.URL, error) { return proxy, nil }})
		_, port, ok := splitHostPort(echo)
		if !ok {
			t.Fatal(echo)
		}
		if conn, err := g.connect(t.Context(), contact{name: name, port: port}); err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			conn.Close()
		}
		g.Close()
	}
	if len(asked) > 0 {
		t.Error("the proxy was asked")
	}
}

// A proxy that never answers is not waited for longer than for a host.
func TestOwnProxyIsSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, by the kernel, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g := New(t.Context(), Options{Log: slog.New(slog.DiscardHandler), ProxyOf: func(*http.Request) (*url.URL, error) {
		return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
	}})
	g.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := g.connect(ctx, contact{name: "api.example.com", port: 443}); err == nil {
		t.Error("it was reached")
	}
}
