package proc

import "net/netip"

// Peer finds the process of this user's that holds the client end of a TCP connection
// over loopback: client is its address, server ours. It reads a good part of
// /proc, milliseconds on a busy machine: call it aside, once a connection. Only Linux tells; elsewhere ok is false.
func Peer(client, server netip.AddrPort) (pid int, ok bool) {
	client = netip.AddrPortFrom(client.Addr().Unmap(), client.Port())
	server = netip.AddrPortFrom(server.Addr().Unmap(), server.Port())
	if !client.Addr().IsLoopback() || !server.Addr().IsLoopback() {
		return 0, false
	}
	return peer(client, server)
}
