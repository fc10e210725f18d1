package gate

import (
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDestination: where packets go, and which bytes are no packet.
func TestDestination(t *testing.T) {
	v4 := []byte{0x46, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_TCP, 0, 0, 10, 0, 0, 1, 1, 2, 3, 4, 0, 0, 0, 0, 0x10, 0, 1, 0xbb}
	v6 := append([]byte{0x60, 0, 0, 0, 0, 8, unix.IPPROTO_UDP, 64}, append(append(make([]byte, 16), netip.MustParseAddr("2606:4700::1111").AsSlice()...), 0, 0, 0, 53)...)
	for _, test := range []struct {
		packet []byte
		to     string
		ok     bool
	}{{v4, "1.2.3.4:443", true}, {v6, "[2606:4700::1111]:53", true}, {v4[:24], "", false}, {v6[:41], "", false}, {nil, "", false}, {[]byte{0x40, 19: 0}, "", false}} {
		to, _, ok := destination(test.packet)
		if ok != test.ok || ok && to.String() != test.to {
			t.Errorf("%x: %v %v", test.packet, to, ok)
		}
	}
}

// FuzzDestination: no packet crashes destination.
func FuzzDestination(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_TCP, 0, 0, 10, 0, 0, 1, 1, 2, 3, 4, 0, 0, 1, 0xbb})
	f.Fuzz(func(t *testing.T, packet []byte) {
		to, protocol, ok := destination(packet)
		if ok && (!to.Addr().IsValid() || protocol != unix.IPPROTO_TCP && protocol != unix.IPPROTO_UDP) {
			t.Fatalf("%x: %v %d", packet, to, protocol)
		}
	})
}

// TestConnectionsAreBounded: connections above the limit wait, and are served when others end.
func TestConnectionsAreBounded(t *testing.T) {
	g := newTestGate(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var now, most atomic.Int32
	g.serve(l, func(c net.Conn) {
		most.Store(max(most.Load(), now.Add(1)))
		_, _ = c.Write([]byte("x"))
		_, _ = io.Copy(io.Discard, c)
		now.Add(-1)
	})
	var open []net.Conn
	served := make(chan net.Conn)
	for range maxConnections + 5 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		go func() {
			if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
				served <- c
			}
		}()
	}
	for range maxConnections {
		<-served
	}
	if n := now.Load(); n != maxConnections {
		t.Errorf("%d at once", n)
	}
	for range 5 { // one ends, one begins
		open[0].Close()
		open = open[1:]
		<-served
	}
	for _, c := range open {
		c.Close()
	}
	if n := most.Load(); n != maxConnections {
		t.Errorf("%d at once", n)
	}
}
