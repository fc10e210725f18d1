package gate

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// resolveTime bounds the question where a name leads. Behind a proxy, names of the internet often lead nowhere.
const resolveTime = time.Second

// dialThrough connects to an allowed host by the user's own proxy, which chooses the address. A name that leads to a
// private address here is refused all the same. It is dialPublic for what the user's variables except, and for
// addresses.
func (g *Gate) dialThrough(ctx context.Context, network, hostPort string) (net.Conn, error) {
	name, port, ok := splitHostPort(hostPort)
	if !ok {
		return nil, fmt.Errorf("%q is no host and port", hostPort)
	}
	scheme := "https"
	if port == 80 {
		scheme = "http"
	}
	proxy, err := g.proxyOf(&http.Request{URL: &url.URL{Scheme: scheme, Host: hostPort}})
	if err != nil {
		return nil, &proxyError{why: "your proxy's address cannot be read"} // the error would have its password
	}
	if _, literal := netip.ParseAddr(name); proxy == nil || literal == nil || name == "localhost" {
		return g.dialPublic(ctx, network, hostPort)
	}
	if err := g.admitHere(ctx, name, port); err != nil {
		return nil, err
	}
	conn, err := dialProxy(ctx, proxy)
	if err != nil {
		return nil, err
	}
	defer closeWith(ctx, conn)()
	tunnel, err := askTunnel(conn, proxy, hostPort)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return tunnel, nil
}

// admitHere refuses a name that this machine knows, and that leads to an address that dialPublic would refuse.
func (g *Gate) admitHere(ctx context.Context, name string, port int) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	addrs, err := g.lookup(ctx, "ip", name)
	if err != nil {
		return nil //nolint:nilerr // only the proxy knows it
	}
	for _, addr := range addrs {
		if err := g.admit(name, netip.AddrPortFrom(addr.Unmap(), uint16(port)).String()); err != nil {
			return err
		}
	}
	return nil
}

// A proxyError is a refusal of the user's own proxy. It holds no password.
type proxyError struct{ why string }

func (e *proxyError) Error() string { return e.why }

// dialProxy connects to the proxy itself. The proxy may lie at a private address, which no command may reach; but the
// user has named it, and the command cannot choose it.
func dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	ports := map[string]string{"http": "80", "https": "443"}
	if ports[proxy.Scheme] == "" {
		return nil, &proxyError{fmt.Sprintf("your proxy speaks %.20q; only http and https proxies are used", proxy.Scheme)}
	}
	address := net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), ports[proxy.Scheme]))
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, &proxyError{"your proxy cannot be reached: " + err.Error()}
	}
	if proxy.Scheme == "https" {
		return tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12}), nil
	}
	return conn, nil
}

// askTunnel asks the proxy for a connection to a host. The proxy's password goes out here, and only here: the command
// never sees this request.
func askTunnel(conn net.Conn, proxy *url.URL, hostPort string) (net.Conn, error) {
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: hostPort}, Host: hostPort, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password() // "" if there is none
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := ask.Write(conn); err != nil {
		return nil, &proxyError{"your proxy ended the connection"}
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, ask)
	if err != nil {
		return nil, &proxyError{"your proxy gave no answer that could be read"}
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, &proxyError{fmt.Sprintf("your proxy refuses it: %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))}
	}
	return &bufferedConn{Conn: conn, r: reader}, nil // a tunnel's answer has no body
}
