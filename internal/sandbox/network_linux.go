package sandbox

import (
	"context"
	"os"
	"slices"

	"golang.org/x/net/bpf"

	"github.com/pollux-companion/pollux/internal/sandbox/filter"
	"github.com/pollux-companion/pollux/internal/sandbox/gate"
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
	tap, err := bpf.Assemble(gate.TapFilter())
	n.Tap = filter.SockFilter(tap)
	return n, err
}

// openGate serves the listeners of a sandbox.
func (r *run) openGate(ctx context.Context, files []*os.File) (*gate.Gate, error) {
	g := gate.New(ctx, r.s.gateOptions(r.policy, ""))
	meter(g, r.c.Limits.Traffic, r.kill)
	if err := g.ServeInside(files, r.setup.Net.Ports); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}
