// Package gate is the only way out of a sandbox. It lets a command contact the hosts that its policy names, through a
// proxy and through listeners that take connections to any address, and notes every other contact.
package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/words"
)

const (
	// maxConnections is how many connections a command may have at once. More of them wait.
	maxConnections = 64
	// dialTimeout bounds resolving and connecting together.
	dialTimeout = 15 * time.Second
	// firstBytes bounds how long a connection may wait before its first bytes, which the gate inspects.
	firstBytes = 15 * time.Second
	// maxNames bounds how many names a command can get addresses for.
	maxNames = 4096
	// maxDenials is how many refused contacts a Gate keeps. A command can ask for any number of names.
	maxDenials = 100
)

// A Denial is a contact that the policy does not allow.
type Denial struct {
	Host  string `json:"host"` // as the command named it, printable
	Port  int    `json:"port,omitempty"`
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// Options of New.
type Options struct {
	// Hosts may be contacted, on their ports.
	Hosts []permission.Host
	// Key is the proxy's password; "" for none, where only the command can reach the proxy.
	Key string
	// Dial replaces the dialler, and is then responsible for the addresses behind names. For tests; nil for none.
	Dial func(ctx context.Context, network, hostPort string) (net.Conn, error)
	// ProxyOf names the user's own proxy for a request, as http.ProxyFromEnvironment does. The allowed hosts are then
	// contacted through it, and it alone chooses the addresses. nil: they are contacted directly.
	ProxyOf func(*http.Request) (*url.URL, error)
	// Event is told each refused contact as it happens, from several goroutines at once; nil for nobody.
	Event func(Denial)
	Log   *slog.Logger
}

// A Gate serves one run. It accepts connections through the proxy and the transparent entrance, and connects to the
// allowed hosts for the command. Its methods may be used from several goroutines.
//
// Goroutines: one for each listener and one for each connection (two while it is relayed); Close ends them and waits
// for them.
type Gate struct {
	hosts []permission.Host
	dial  func(ctx context.Context, network, hostPort string) (net.Conn, error)
	event func(Denial)
	log   *slog.Logger
	own   func() ([]net.Addr, error) // this machine's own addresses
	key   string                     // the proxy's password, "" for none
	// proxyOf names the user's own proxy; nil if that is not used.
	proxyOf func(*http.Request) (*url.URL, error)
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	over    func() // called when left is used up; nil for no limit
	left    atomic.Int64

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	slots  chan struct{}

	mu      sync.Mutex // guards the fields below
	closed  bool       // accepts nothing new
	names   map[netip.Addr]string
	addrs   map[string]netip.Addr
	denials []Denial
}

// New returns a Gate that serves nothing yet. It closes its connections when ctx ends.
func New(ctx context.Context, o Options) *Gate {
	g := &Gate{own: net.InterfaceAddrs, lookup: net.DefaultResolver.LookupNetIP, hosts: o.Hosts, key: o.Key, dial: o.Dial, event: o.Event, log: o.Log, slots: make(chan struct{}, maxConnections),
		names: map[netip.Addr]string{}, addrs: map[string]netip.Addr{}}
	if g.proxyOf = o.ProxyOf; g.dial == nil && g.proxyOf != nil {
		g.dial = g.dialThrough
	}
	if g.dial == nil {
		g.dial = g.dialPublic
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Close ends every connection, and returns the refused contacts, each once with a count.
func (g *Gate) Close() []Denial {
	g.cancel()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denials)
}

// serve handles the connections of a listener until the gate closes.
func (g *Gate) serve(l net.Listener, handle func(net.Conn)) {
	context.AfterFunc(g.ctx, func() { l.Close() })
	g.wg.Go(func() {
		defer l.Close()
		for {
			select {
			case g.slots <- struct{}{}:
			case <-g.ctx.Done():
				return
			}
			conn, err := l.Accept()
			if err != nil {
				<-g.slots
				if g.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(10 * time.Millisecond) // most likely out of descriptors
				continue
			}
			stop := context.AfterFunc(g.ctx, func() { conn.Close() })
			g.wg.Go(func() {
				defer func() { stop(); conn.Close(); <-g.slots }()
				handle(conn)
			})
		}
	})
}

// begin adds a handler that Close waits for. It is false once the gate is closed.
func (g *Gate) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.wg.Add(1)
	}
	return !g.closed
}

// A contact is a host and port that the policy allows.
type contact struct {
	name string // lower case without a final dot, or an address
	port int
	tls  bool // only TLS for this name
	web  bool // only HTTP, with or without TLS
}

func (c contact) hostPort() string { return net.JoinHostPort(c.name, strconv.Itoa(c.port)) }

// contact returns what the policy allows for a name and port. plain means that the command is about to speak HTTP
// without TLS.
func (g *Gate) contact(name string, port int, plain bool) (contact, bool) {
	c := contact{name: name, port: port, tls: true, web: true}
	found := false
	for _, h := range g.hosts {
		if !matches(h, name) || !slices.Contains(h.Ports, port) {
			continue
		}
		encrypted := h.Scheme == "https" || h.Scheme == "wss" || h.Scheme == "" && port == 443
		// Several entries can match. An entry that allows TLS only does not allow plain HTTP, but another one may.
		// A restriction remains only if all matching entries share it.
		if plain && encrypted {
			continue
		}
		found = true
		c.tls = c.tls && encrypted
		c.web = c.web && (encrypted || h.Scheme == "http" || h.Scheme == "ws" || h.Scheme == "" && port == 80)
	}
	return c, found
}

// matches says whether an entry of the policy covers a name. Both are in lower case.
func matches(h permission.Host, name string) bool {
	if h.Wildcard {
		return strings.HasSuffix(name, "."+h.Name) && len(name) > len(h.Name)+1
	}
	return strings.Trim(h.Name, "[]") == name
}

// knows says whether the policy allows a name on any port.
func (g *Gate) knows(name string) bool {
	return slices.ContainsFunc(g.hosts, func(h permission.Host) bool { return matches(h, name) })
}

// hostName normalises a host as a program wrote it: lower case, no final dot, addresses in their usual form. It
// refuses spellings that only some programs read as an address (127.1, 0x7f.0.0.1, 2130706433).
func hostName(text string) (string, bool) {
	name := strings.TrimSuffix(strings.ToLower(text), ".")
	if addr, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return addr.Unmap().String(), addr.Zone() == ""
	}
	if name == "" || len(name) > 253 {
		return "", false
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
	}
	last := labels[len(labels)-1]
	return name, last[0] < '0' || last[0] > '9'
}

// splitHostPort reads "host:port" with a port from 1 to 65535.
func splitHostPort(text string) (name string, port int, ok bool) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, false
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || number[0] == '+' {
		return "", 0, false
	}
	name, ok = hostName(host)
	return name, int(n), ok
}

// dialPublic connects to an allowed host. It checks the address at the moment of the dial, so a name that resolves
// differently a moment later gains nothing (DNS rebinding). An address outside the public internet is refused, unless
// the policy names it literally.
func (g *Gate) dialPublic(ctx context.Context, network, hostPort string) (net.Conn, error) {
	name, _, ok := splitHostPort(hostPort)
	if !ok {
		return nil, fmt.Errorf("%q is no host and port", hostPort)
	}
	d := net.Dialer{Timeout: dialTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return g.admit(name, address)
	}}
	return d.DialContext(ctx, network, hostPort)
}

// admit checks the address that a name leads to, at the moment of the dial.
func (g *Gate) admit(name, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" && to.Addr().IsLoopback() {
		return nil
	}
	own, err := g.isOwn(to.Addr())
	if err != nil || own || !public(to.Addr()) {
		return errors.Join(&privateError{name: name, addr: to.Addr(), own: own}, err)
	}
	return nil
}

// A privateError refuses a name that leads to a private address.
type privateError struct {
	name string
	addr netip.Addr
	own  bool // an address of this machine, public or not
}

func (e *privateError) Error() string {
	if e.own {
		return fmt.Sprintf("the name %s leads to %s, which is an address of this machine; name the address itself to allow it", e.name, e.addr)
	}
	return fmt.Sprintf("the name %s leads to %s, which is not an address of the public internet", e.name, e.addr)
}

// isOwn says whether an address currently belongs to this machine. A service that listens on all addresses is
// reachable there, even if the address is public.
func (g *Gate) isOwn(addr netip.Addr) (bool, error) {
	all, err := g.own()
	if err != nil {
		return false, fmt.Errorf("the addresses of this machine are not known: %w", err)
	}
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Unmap().WithZone("") == addr.Unmap().WithZone("") {
			return true, nil
		}
	}
	return false, nil
}

// public says whether an address belongs to the public internet. Every block reserved for another purpose does not
// (RFC 6890 and its successors).
func public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Zone() != "" {
		return false
	}
	for _, p := range notPublic() {
		if p.Contains(addr) {
			return false
		}
	}
	return true
}

// notPublic lists the reserved blocks that netip does not know. The last ones embed IPv4 addresses, which can be
// private.
var notPublic = sync.OnceValue(func() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "100::/64", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/23", "2002::/16",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
})

// deny records a refusal. The first of its kind is also reported at once.
func (g *Gate) deny(host string, port int, why string) {
	d := Denial{Host: words.Printable(words.Clip(host, 255)), Port: port, Why: words.Printable(words.Clip(why, 300)), Count: 1}
	g.mu.Lock()
	for i, old := range g.denials {
		if old.Host == d.Host && old.Port == d.Port && old.Why == d.Why {
			g.denials[i].Count++
			g.mu.Unlock()
			return
		}
	}
	room := len(g.denials) < maxDenials
	if room {
		g.denials = append(g.denials, d)
	}
	g.mu.Unlock()
	if room && g.event != nil {
		g.event(d)
	}
}

// whyNot is the usual reason of a refusal.
const whyNot = "the policy does not allow it"

// ownProxy names the variable by which the user has a proxy; "" for none.
func ownProxy() string {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// connect dials an allowed contact, and records a refusal of its address.
func (g *Gate) connect(ctx context.Context, c contact) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := g.dial(ctx, "tcp", c.hostPort())
	if private := (*privateError)(nil); errors.As(err, &private) {
		g.deny(c.name, c.port, private.Error())
	} else if refused := (*proxyError)(nil); errors.As(err, &refused) {
		g.deny(c.name, c.port, "it is allowed, but "+refused.Error())
	} else if proxy := ownProxy(); err != nil && proxy != "" && g.proxyOf == nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		g.deny(c.name, c.port, "it is allowed, but cannot be reached directly; your proxy ("+proxy+") is not used, because it would hide which address is contacted; --use-proxy (for extensions' tools, tools.useProxy in the settings) has it used")
	}
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, g: g}, nil
}
