package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/pollux-companion/pollux/internal/permission"
)

// newTestGate makes a gate for some hosts; dial replaces the internet.
func newTestGate(t testing.TB, dial func(ctx context.Context, network, hostPort string) (net.Conn, error), texts ...string) *Gate {
	t.Helper()
	var hosts []permission.Host
	for _, text := range texts {
		h, err := permission.ParseHost(text)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	g := New(context.Background(), Options{Hosts: hosts, Dial: dial, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { g.Close() })
	return g
}

// TestContact: which names and ports the entries mean (SPEC E-2).
func TestContact(t *testing.T) {
	g := newTestGate(t, nil, "example.com", "https://only.tls", "http://plain.org:8080", "*.wild.net", "ssh://git.org:22", "https://127.0.0.1:8443", "https://[2606:4700::1]", "http://both.com:443", "https://both.com")
	for _, test := range []struct {
		hostPort string
		plain    bool
		ok, tls  bool
	}{
		{"example.com:443", false, true, true},
		{"example.com:80", true, true, false},
		{"example.com:443", true, false, false},
		{"EXAMPLE.com.:443", false, true, true},
		{"example.com:8443", false, false, false},
		{"www.example.com:443", false, false, false},
		{"example.com.evil.org:443", false, false, false},
		{"only.tls:443", false, true, true},
		{"only.tls:80", true, false, false},
		{"plain.org:8080", true, true, false},
		{"plain.org:80", true, false, false},
		{"wild.net:443", false, false, false},
		{"a.wild.net:443", false, true, true},
		{"a.b.wild.net:443", false, true, true},
		{"awild.net:443", false, false, false},
		{".wild.net:443", false, false, false},
		{"git.org:22", false, true, false},
		{"127.0.0.1:8443", false, true, true},
		{"[::ffff:127.0.0.1]:8443", false, true, true},
		{"127.1:8443", false, false, false},
		{"2130706433:8443", false, false, false},
		{"0x7f.0.0.1:8443", false, false, false},
		{"localhost:8443", false, false, false},
		{"[2606:4700::1]:443", false, true, true},
		{"[2606:4700::1%eth0]:443", false, false, false},
		{"both.com:443", false, true, false},
		{"example.com%00.evil:443", false, false, false},
		{"user@example.com:443", false, false, false},
		{"exämple.com:443", false, false, false},
		{"example.com:0443", false, true, true},
		{"example.com:+443", false, false, false},
		{"example.com:0", false, false, false},
		{"example.com", false, false, false},
		{":443", false, false, false},
	} {
		name, port, ok := splitHostPort(test.hostPort)
		var c contact
		if ok {
			c, ok = g.contact(name, port, test.plain)
		}
		if ok != test.ok || ok && c.tls != test.tls {
			t.Errorf("%s plain=%v: %v %+v", test.hostPort, test.plain, ok, c)
		}
	}
}

// TestPublic: public and other addresses are told apart.
func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "2606:4700::1111": true, "172.32.0.1": true, "100.128.0.1": true,
		"127.0.0.1": false, "127.1.2.3": false, "0.0.0.0": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false, "192.0.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "::ffff:10.0.0.1": false, "::ffff:1.1.1.1": true,
		"64:ff9b::a00:1": false, "2002:a00:1::": false, "2001::1": false, "::7f00:1": false, "2001:db8::1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestRebinding: a name is refused because of the address at the moment of the dial.
func TestRebinding(t *testing.T) {
	g := newTestGate(t, nil, "http://localhost:1", "http://127.0.0.1:1")
	for _, name := range []string{"ip6-localhost", "127.0.0.1.nip.invalid"} {
		if _, err := g.connect(context.Background(), contact{name: name, port: 1}); err == nil {
			t.Errorf("%s was reached", name)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, name := range []string{"localhost", "127.0.0.1"} { // named literally
		conn, err := g.connect(context.Background(), contact{name: name, port: port})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		conn.Close()
	}
}

// internet dials one server for every name, and records the names.
func internet(to string, names chan<- string) func(ctx context.Context, network, hostPort string) (net.Conn, error) {
	return func(ctx context.Context, _, hostPort string) (net.Conn, error) {
		names <- hostPort
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}
}

// TestProxy: plain requests go to the host in their URL, whatever their Host header says. Tunnels carry TLS for their
// host only. Other hosts are refused by name.
func TestProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://evil.org/", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "host "+r.Host+" forwarded "+r.Header.Get("X-Forwarded-For"))
	}))
	defer upstream.Close()
	dialled := make(chan string, 100)
	g := newTestGate(t, internet(upstream.Listener.Addr().String(), dialled), "http://good.org", "https://tls.org", "tcp://raw.org:7")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.ServeProxy(l)
	proxy := &url.URL{Scheme: "http", Host: l.Addr().String()}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
	for _, test := range []struct {
		url  string
		code int
		body string
	}{
		{"http://good.org/", 200, "host good.org forwarded "},
		{"http://evil.org/", 403, "evil.org"},
		{"http://good.org/redirect", 403, "evil.org"},
		{"http://good.org:81/", 403, "good.org"},
		{"http://tls.org:443/", 403, "tls.org"},
	} {
		resp, err := client.Get(test.url)
		if err != nil {
			t.Error(test.url, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != test.code || !strings.Contains(string(body), test.body) {
			t.Errorf("%s: %d %s", test.url, resp.StatusCode, body)
		}
	}
	for _, test := range []struct{ request, answer string }{
		{"GET http://good.org/ HTTP/1.1\r\nHost: evil.org\r\nConnection: close\r\n\r\n", "host good.org"},
		{"CONNECT raw.org:7 HTTP/1.1\r\nHost: x\r\n\r\n", "200"},
		{"CONNECT tls.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "200"},
		{"CONNECT evil.org:443 HTTP/1.1\r\nHost: tls.org:443\r\n\r\n", "403"},
		{"CONNECT tls.org:22 HTTP/1.1\r\nHost: x\r\n\r\n", "403"},
		{"GET / HTTP/1.1\r\nHost: good.org\r\n\r\n", "400"},
		{"GET ftp://good.org/ HTTP/1.1\r\nHost: good.org\r\n\r\n", "400"},
		{"GET http://u:p@good.org/ HTTP/1.1\r\nHost: good.org\r\n\r\n", "400"},
		{"garbage\r\n\r\n", "400"},
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = conn.Write([]byte(test.request))
		var answer []byte
		for one := make([]byte, 1); err == nil && !strings.Contains(string(answer), test.answer); answer = append(answer, one...) {
			_, err = io.ReadFull(conn, one)
		}
		if err != nil {
			t.Errorf("%q: %q, %v", test.request, answer, err)
		}
		conn.Close()
	}
	denials := g.Close()
	for len(dialled) > 0 {
		name := <-dialled
		if !slices.Contains([]string{"good.org:80", "raw.org:7", "tls.org:443"}, name) {
			t.Errorf("%s was dialled", name)
		}
	}
	if d := denials; len(d) < 4 || !slices.ContainsFunc(d, func(d Denial) bool { return d.Host == "evil.org" && d.Port == 80 && d.Count >= 2 }) {
		t.Errorf("denials %+v", d)
	}
}

// TestHello: only TLS for that host passes to a TLS host, and arrives unchanged.
func TestHello(t *testing.T) {
	g := newTestGate(t, nil, "https://good.org")
	c := contact{name: "good.org", port: 443, tls: true}
	for name, test := range map[string]struct {
		send func(net.Conn)
		ok   bool
	}{
		"its name":     {func(conn net.Conn) { _ = tls.Client(conn, &tls.Config{ServerName: "good.org"}).Handshake() }, true},
		"upper case":   {func(conn net.Conn) { _ = tls.Client(conn, &tls.Config{ServerName: "GOOD.org"}).Handshake() }, true},
		"no name":      {func(conn net.Conn) { _ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake() }, true},
		"another name": {func(conn net.Conn) { _ = tls.Client(conn, &tls.Config{ServerName: "evil.org"}).Handshake() }, false},
		"plain": {func(conn net.Conn) {
			_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: good.org\r\n\r\n"))
			conn.Close()
		}, false},
		"nothing": {func(conn net.Conn) { conn.Close() }, false},
	} {
		ours, theirs := net.Pipe()
		go test.send(theirs)
		first, ok := g.helloFor(ours, c)
		if ok != test.ok {
			t.Errorf("%s: %v", name, ok)
		}
		ours.Close()
		theirs.Close()
		if ok && (len(first) < 100 || first[0] != 22) {
			t.Errorf("%s: %d bytes are passed on", name, len(first))
		}
	}
}

// question makes a DNS message.
func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}}}
	data, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestResolver: allowed names have one address inside, always the same; others do not exist.
func TestResolver(t *testing.T) {
	g := newTestGate(t, nil, "example.com", "*.wild.net", "http://localhost:80")
	for _, test := range []struct {
		name  string
		kind  dnsmessage.Type
		code  dnsmessage.RCode
		count int
	}{
		{"example.com.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"EXAMPLE.com.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"example.com.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, 0},
		{"example.com.", dnsmessage.TypeTXT, dnsmessage.RCodeSuccess, 0},
		{"a.wild.net.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"localhost.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"secret-data.evil.org.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"evil.example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
	} {
		var m dnsmessage.Message
		if err := m.Unpack(g.resolve(question(t, test.name, test.kind))); err != nil {
			t.Fatal(err)
		}
		if m.RCode != test.code || len(m.Answers) != test.count || m.ID != 7 || !m.Response {
			t.Errorf("%s %v: %+v", test.name, test.kind, m)
		}
	}
	first, _ := g.address("example.com")
	again, _ := g.address("example.com")
	other, _ := g.address("a.wild.net")
	if first != again || first == other || !first.IsLoopback() {
		t.Error(first, again, other)
	}
	for _, bad := range [][]byte{nil, {1, 2, 3}, make([]byte, 12)} {
		if answer := g.resolve(bad); answer != nil {
			t.Errorf("%v is answered with %v", bad, answer)
		}
	}
	for i := range maxNames + 10 {
		g.address(strings.Repeat("x", i%50+1) + string(rune('a'+i%26)) + "." + strings.Repeat("y", i/50+1) + ".wild.net")
	}
	if len(g.addrs) > maxNames {
		t.Error("names are not bounded")
	}
}

// TestDenialsAreBounded: a command can ask for any number of names; the list stays short.
func TestDenialsAreBounded(t *testing.T) {
	told := 0
	g := newTestGate(t, nil)
	g.event = func(Denial) { told++ }
	for i := range 10 * maxDenials {
		g.deny(strings.Repeat("x", i%200)+".org\x1b[31m", i%7, whyNot)
	}
	d := g.Close()
	if len(d) != maxDenials || told != maxDenials || strings.Contains(d[0].Host, "\x1b") {
		t.Errorf("%d denials, %d told, %q", len(d), told, d[0].Host)
	}
}

// FuzzHostPattern: no entry of a policy, and no name from a program, matches more than it says.
func FuzzHostPattern(f *testing.F) {
	for _, seed := range [][2]string{{"example.com", "example.com:443"}, {"*.a.b", "x.a.b.:80"}, {"https://[::1]:1", "[::1]:1"}, {"http://127.0.0.1", "127.1:80"}, {"localhost", "localhost:443"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, entry, hostPort string) {
		h, err := permission.ParseHost(entry)
		if err != nil {
			return
		}
		g := &Gate{hosts: []permission.Host{h}}
		name, port, ok := splitHostPort(hostPort)
		if !ok {
			return
		}
		if again, ok := hostName(name); !ok || again != name {
			t.Fatalf("%q is not in its final form", name)
		}
		c, ok := g.contact(name, port, false)
		if !ok {
			return
		}
		if !slices.Contains(h.Ports, c.port) {
			t.Fatalf("%q lets %q in at port %d", entry, hostPort, c.port)
		}
		want := strings.Trim(h.Name, "[]")
		if h.Wildcard && !strings.HasSuffix(name, "."+want) || !h.Wildcard && name != want {
			t.Fatalf("%q lets %q in", entry, name)
		}
	})
}

// FuzzProxy: whatever a program sends to the proxy, only allowed hosts are dialled.
func FuzzProxy(f *testing.F) {
	for _, seed := range []string{"GET http://good.org/ HTTP/1.1\r\nHost: evil.org\r\n\r\n", "CONNECT good.org:443 HTTP/1.1\r\n\r\n", "GET http://good.org@evil.org/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://evil.org#good.org/ HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT good.org:443@evil.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "POST http://good.org/ HTTP/1.1\r\nHost: good.org\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.org/ HTTP/1.1\r\n\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		var bad error
		g := newTestGate(t, func(_ context.Context, _, hostPort string) (net.Conn, error) {
			if hostPort != "good.org:80" && hostPort != "good.org:443" {
				bad = errors.New(hostPort)
			}
			return nil, errors.New("no internet")
		}, "good.org")
		l := &pipeListener{conns: make(chan net.Conn, 1), done: make(chan struct{})}
		g.ServeProxy(l)
		ours, theirs := net.Pipe()
		l.conns <- theirs
		_ = ours.SetDeadline(time.Now().Add(50 * time.Millisecond))
		go func() { _, _ = ours.Write(sent); _ = ours.SetDeadline(time.Now()) }()
		_, _ = io.Copy(io.Discard, ours)
		ours.Close()
		g.Close()
		if bad != nil {
			t.Fatalf("%q reaches %v", sent, bad)
		}
	})
}

// A pipeListener accepts the connections that are put into it.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// FuzzResolve: no message breaks the resolver, and no answer names an address outside.
func FuzzResolve(f *testing.F) {
	f.Add(question(f, "example.com.", dnsmessage.TypeA))
	f.Add([]byte{0, 1})
	f.Fuzz(func(t *testing.T, message []byte) {
		g := newTestGate(t, nil, "example.com", "*.example.org")
		answer := g.resolve(message)
		if answer == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil {
			t.Fatalf("%x: %v", answer, err)
		}
		for _, a := range m.Answers {
			if body, ok := a.Body.(*dnsmessage.AResource); !ok || body.A[0] != 127 {
				t.Fatalf("%+v", a)
			}
		}
	})
}

// TestOwnAddresses: a name that leads to an address of this machine is refused at the dial, even if the address is
// public: services that listen on all addresses are reachable there (SPEC S-1).
func TestOwnAddresses(t *testing.T) {
	g := New(context.Background(), Options{Log: slog.New(slog.DiscardHandler)})
	addrs := []net.Addr{&net.IPNet{IP: net.ParseIP("1.2.3.4"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2606:4700::1"), Mask: net.CIDRMask(64, 128)}, &net.IPNet{IP: net.ParseIP("8.8.4.4").To4(), Mask: net.CIDRMask(32, 32)}}
	g.own = func() ([]net.Addr, error) { return addrs, nil }
	for text, want := range map[string]bool{
		"1.2.3.4": true, "::ffff:1.2.3.4": true, "2606:4700::1": true, "8.8.4.4": true,
		"1.2.3.5": false, "2606:4700::2": false, "8.8.8.8": false, "::1.2.3.4": false,
	} {
		if got, err := g.isOwn(netip.MustParseAddr(text)); got != want || err != nil {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	addrs = append(addrs, &net.IPNet{IP: net.ParseIP("9.9.9.9"), Mask: net.CIDRMask(8, 32)}) // a network joined since
	if got, _ := g.isOwn(netip.MustParseAddr("9.9.9.9")); !got {
		t.Error("a new address is not seen")
	}
	for name, to := range map[string]string{"1.2.3.4": "1.2.3.4:80", "[1.2.3.4]": "1.2.3.4:80", "localhost": "127.0.0.1:80", "example.com": "1.1.1.1:443"} {
		if err := g.admit(strings.Trim(name, "[]"), to); err != nil {
			t.Errorf("%s at %s: %v", name, to, err)
		}
	}
	for name, to := range map[string]string{"example.com": "1.2.3.4:80", "localhost": "1.2.3.4:80", "six.example.com": "[2606:4700::1]:443", "mapped.example.com": "[::ffff:8.8.4.4]:80", "me": "10.0.0.1:80"} {
		if err := g.admit(name, to); err == nil {
			t.Errorf("%s at %s is let through", name, to)
		}
	}
	// An unknown answer means refusal.
	g.own = func() ([]net.Addr, error) { return nil, errors.New("no netlink") }
	if _, err := g.isOwn(netip.MustParseAddr("1.1.1.1")); err == nil || g.admit("example.com", "1.1.1.1:443") == nil {
		t.Error("without a list an address is let through")
	}
}

// A host that cannot be reached directly is denied with the user's own proxy named, which pollux does not use.
func TestOwnProxyIsNamed(t *testing.T) {
	host, err := permission.ParseHost("https://api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, proxy := range []string{"", "http://user:secret@proxy.example:3128"} {
		t.Setenv("HTTPS_PROXY", proxy)
		g := New(t.Context(), Options{Hosts: []permission.Host{host}, Log: slog.New(slog.DiscardHandler),
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route to host") }})
		if _, err := g.connect(t.Context(), contact{name: "api.example.com", port: 443}); err == nil {
			t.Fatal("it was reached")
		}
		all := g.Close()
		if proxy == "" && len(all) > 0 {
			t.Errorf("without a proxy: %v", all)
		}
		if proxy != "" && (len(all) != 1 || !strings.Contains(all[0].Why, "your proxy (HTTPS_PROXY) is not used") || strings.Contains(all[0].Why, "secret")) {
			t.Errorf("with one: %v", all)
		}
	}
}
