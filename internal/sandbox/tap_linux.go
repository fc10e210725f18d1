package sandbox

import (
	"context"
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// serveTap notes the contacts that nobody of ours would hear of: those to
// addresses and ports at which nothing listens. ports are the transparent
// entrance's, which tells of its own.
func (g *gate) serveTap(tap *os.File, ports []int) {
	context.AfterFunc(g.ctx, func() { _ = tap.SetReadDeadline(time.Now()) }) // a socket has deadlines
	g.wg.Go(func() {
		// The kernel takes some ten milliseconds to close this kind of socket,
		// and nobody needs to wait for that.
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

// denyAddress notes a contact to an address, by the name that the command
// knows it by. What happens on the sandbox's own loopback is nobody's business.
func (g *gate) denyAddress(to netip.AddrPort) {
	g.mu.Lock()
	name := g.names[to.Addr()]
	g.mu.Unlock()
	if name != "" || !to.Addr().IsLoopback() {
		g.deny(or(name, to.Addr().String()), int(to.Port()), whyNot)
	}
}

// destination reads where a packet goes, from its two headers.
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

// tapLength is as much of a packet as is looked at: both headers, with the
// longest options of the first.
const tapLength = 128

// tapFilter lets through what openTap says, once: on the loopback interface
// every packet is seen twice, on its way out and in.
func tapFilter() []bpf.Instruction {
	const syn, ack = 0x02, 0x10
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 16}, // to the end: nothing
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 7},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: 13},
		bpf.LoadAbsolute{Off: 9, Size: 1}, // version 4: the protocol
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 10},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 10},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.Jump{Skip: 4},
		bpf.LoadAbsolute{Off: 6, Size: 1}, // version 6: the next header
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipFalse: 4},
		bpf.LoadAbsolute{Off: 40 + 13, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: syn | ack}, // of TCP's flags
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: syn, SkipFalse: 1},
		bpf.RetConstant{Val: tapLength},
		bpf.RetConstant{Val: 0},
	}
}
