package sandbox

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// maxPorts bounds how many ports a policy can name; each is a descriptor that
// is handed over.
const maxPorts = 64

const dnsPort = 53

// network is what has to listen inside; nil without hosts.
func network(p Policy) (*netSetup, error) {
	if len(p.Hosts) == 0 {
		return nil, nil
	}
	n := &netSetup{Proxy: 3128}
	for _, h := range p.Hosts {
		n.Ports = append(n.Ports, h.Ports...)
		addr, err := netip.ParseAddr(strings.Trim(h.Name, "[]"))
		if err == nil && addr.Is4() && !addr.IsLoopback() && !addr.IsUnspecified() && !addr.IsMulticast() {
			n.Addrs = append(n.Addrs, addr.String())
		}
	}
	slices.Sort(n.Ports)
	n.Ports = slices.Compact(n.Ports)
	slices.Sort(n.Addrs)
	n.Addrs = slices.Compact(n.Addrs)
	// The resolver is there; a policy with this port has the proxy.
	n.Ports = slices.DeleteFunc(n.Ports, func(port int) bool { return port == dnsPort })
	for slices.Contains(n.Ports, n.Proxy) {
		n.Proxy++
	}
	if len(n.Ports) > maxPorts || len(n.Addrs) > maxPorts {
		return nil, policyError("the policy names more than %d ports or addresses", maxPorts)
	}
	return n, nil
}

// openGate serves the listeners that came out of a sandbox, in the order of
// the stage's openNetwork.
func openGate(ctx context.Context, p Policy, o *Options, files []*os.File) (*gate, error) {
	g := newGate(ctx, p, o)
	for i, f := range files {
		var err error
		if i == 0 {
			var conn net.PacketConn
			if conn, err = net.FilePacketConn(f); err == nil {
				g.servePackets(conn)
			}
		} else {
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				g.serveListener(i, l)
			}
		}
		f.Close()
		if err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

func (g *gate) serveListener(i int, l net.Listener) {
	switch i {
	case 1:
		g.serve(l, g.serveNames)
	case 2:
		g.serveProxy(l)
	default:
		g.serve(l, g.transparent)
	}
}
