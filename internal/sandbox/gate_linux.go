package sandbox

import (
	"context"
	"net"
	"os"
	"slices"

	"golang.org/x/net/bpf"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// maxPorts bounds how many ports a policy can name. Each costs a descriptor.
const maxPorts = 64

// network describes the listeners inside; nil without hosts.
func network(p Policy) (*inside.Network, error) {
	if len(p.Hosts) == 0 {
		return nil, nil
	}
	n := &inside.Network{Proxy: 3128}
	for _, h := range p.Hosts {
		n.Ports = append(n.Ports, h.Ports...)
	}
	slices.Sort(n.Ports)
	n.Ports = slices.Compact(n.Ports)
	// Port 53 belongs to the resolver. A policy that names it is served through the proxy.
	n.Ports = slices.DeleteFunc(n.Ports, func(port int) bool { return port == inside.DNSPort })
	for slices.Contains(n.Ports, n.Proxy) {
		n.Proxy++
	}
	if len(n.Ports) > maxPorts {
		return nil, policyError("the policy names more than %d ports", maxPorts)
	}
	tap, err := bpf.Assemble(tapFilter())
	n.Tap = sockFilter(tap)
	return n, err
}

// openGate serves the listeners of a sandbox, in the order of openNetwork.
func (r *run) openGate(ctx context.Context, files []*os.File) (*gate, error) {
	g := newGate(ctx, r.policy, &r.s.o)
	g.limit(r.c.Limits.Traffic, r.kill)
	last := len(files) - 1
	for i, f := range files {
		var err error
		switch i {
		case 0:
			var conn net.PacketConn
			if conn, err = net.FilePacketConn(f); err == nil {
				g.servePackets(conn)
			}
			f.Close()
		case last:
			g.serveTap(f, r.setup.Net.Ports)
		default:
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				g.serveListener(i, l)
			}
			f.Close()
		}
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
