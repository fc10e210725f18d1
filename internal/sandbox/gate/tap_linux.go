package gate

import (
	"cmp"
	"context"
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// serveTap reports contacts to addresses and ports at which nothing listens. ports are the ports of the transparent
// entrance, which reports its own contacts.
func (g *Gate) serveTap(tap *os.File, ports []int) {
	context.AfterFunc(g.ctx, func() { _ = tap.SetReadDeadline(time.Now()) }) // a socket has deadlines
	g.wg.Go(func() {
		// The kernel takes about 10 ms to close a packet socket. Nobody needs to wait for that.
		defer func() { go tap.Close() }()
		packet := make([]byte, tapLength)
		for {
			n, err := tap.Read(packet)
			if err != nil {
				return // the gate closes
			}
			to, protocol, ok := destination(packet[:n])
			switch {
			case !ok || protocol == unix.IPPROTO_TCP && slices.Contains(ports, int(to.Port())):
			case protocol == unix.IPPROTO_UDP && !to.Addr().IsLoopback():
				g.deny(to.Addr().String(), int(to.Port()), "UDP does not leave the sandbox")
			default:
				g.denyAddress(to)
			}
		}
	})
}

// denyAddress reports a contact to an address, under the name that the command knows. Contacts on the sandbox's own
// loopback are not reported.
func (g *Gate) denyAddress(to netip.AddrPort) {
	g.mu.Lock()
	name := g.names[to.Addr()]
	g.mu.Unlock()
	if name != "" || !to.Addr().IsLoopback() {
		g.deny(cmp.Or(name, to.Addr().String()), int(to.Port()), whyNot)
	}
}

// destination returns where a packet goes, from its IP and TCP or UDP headers.
func destination(p []byte) (to netip.AddrPort, protocol uint8, ok bool) {
	if len(p) < 20 {
		return to, 0, false
	}
	var addr netip.Addr
	var header int
	switch p[0] >> 4 {
	case 4:
		addr, _ = netip.AddrFromSlice(p[16:20])
		protocol, header = p[9], int(p[0]&15)*4
	case 6:
		if len(p) < 40 {
			return to, 0, false
		}
		addr, _ = netip.AddrFromSlice(p[24:40])
		protocol, header = p[6], 40
	default:
		return to, 0, false
	}
	if header < 20 || len(p) < header+4 || protocol != unix.IPPROTO_TCP && protocol != unix.IPPROTO_UDP {
		return to, 0, false
	}
	return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(p[header+2:])), protocol, true
}

// tapLength is how much of a packet is read, in bytes: both headers, with the longest IP options.
const tapLength = 128

// TapFilter passes the packets that serveTap reports, each once: on the loopback interface every packet appears
// twice, outgoing and incoming.
func TapFilter() []bpf.Instruction {
	const syn, ack = 0x02, 0x10
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 16}, // to the end: drop
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 7},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: 13},
		bpf.LoadAbsolute{Off: 9, Size: 1}, // IPv4: the protocol
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 10},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 10},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.Jump{Skip: 4},
		bpf.LoadAbsolute{Off: 6, Size: 1}, // IPv6: the next header
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 4},
		bpf.LoadAbsolute{Off: 40 + 13, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: syn | ack}, // TCP flags
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: syn, SkipFalse: 1},
		bpf.RetConstant{Val: tapLength},
		bpf.RetConstant{Val: 0},
	}
}
