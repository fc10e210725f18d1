package proc

import (
	"encoding/binary"
	"net/netip"
)

// Other systems' tables are parsed in this file, on every system, so that the parsers are tested everywhere.

// A pcb is macOS's data of one TCP socket.
type pcb struct {
	state uint32
	uid   uint32
	pid   int // that last used it
}

// The records of net.inet.tcp.pcblist_n (xnu: bsd/netinet/in_pcblist.c), in the order of each socket, and the offsets
// of their fields.
const (
	pcbSocket = 0x001 // struct xsocket_n
	pcbInet   = 0x010 // struct xinpcb_n
	pcbTCP    = 0x020 // struct xtcpcb_n, the last record of a socket

	inetForeignPort, inetLocalPort = 16, 18
	inetVersion                    = 44
	inetForeign, inetLocal         = 48, 64
	inetSize                       = 80
	socketUID, socketPID           = 64, 68
	socketSize                     = 72
	tcpState                       = 36
	tcpSize                        = 40
)

// findPCB finds in the value of net.inet.tcp.pcblist_n the socket that is bound to local and connected to remote. All
// supported Macs are little-endian.
func findPCB(b []byte, local, remote netip.AddrPort) (found pcb, ok bool) {
	if len(b) < 24 {
		return pcb{}, false
	}
	b = b[min(int(binary.LittleEndian.Uint32(b)), len(b)):] // the header starts with its own length
	var one pcb
	matches := false
	for len(b) >= 8 {
		size, kind := int(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
		if size < 8 || size > len(b) {
			return pcb{}, false
		}
		record := b[:size]
		switch {
		case kind == pcbInet:
			one, matches = pcb{}, size >= inetSize && isPCB(record, local, remote)
		case kind == pcbSocket && size >= socketSize:
			one.uid = binary.LittleEndian.Uint32(record[socketUID:])
			one.pid = int(int32(binary.LittleEndian.Uint32(record[socketPID:])))
		case kind == pcbTCP && size >= tcpSize && matches:
			one.state = binary.LittleEndian.Uint32(record[tcpState:])
			return one, true
		}
		b = b[min((size+7)&^7, len(b)):]
	}
	return pcb{}, false
}

func isPCB(b []byte, local, remote netip.AddrPort) bool {
	if binary.BigEndian.Uint16(b[inetLocalPort:]) != local.Port() || binary.BigEndian.Uint16(b[inetForeignPort:]) != remote.Port() {
		return false
	}
	at := func(offset int) netip.Addr {
		if b[inetVersion]&1 != 0 { // IPv4, or a dual-stack socket
			return netip.AddrFrom4([4]byte(b[offset+12 : offset+16]))
		}
		return netip.AddrFrom16([16]byte(b[offset : offset+16])).Unmap()
	}
	return at(inetLocal) == local.Addr() && at(inetForeign) == remote.Addr()
}

const (
	rowSize = 24
	// The states (MIB_TCP_STATE) from the beginning of a connection to its orderly end.
	rowEstablished, rowLastAck = 5, 10
)

// findRow finds a connection in Windows' MIB_TCPTABLE_OWNER_PID, whose rows are state, local address and port, remote
// address and port, process.
func findRow(table []byte, local, remote netip.AddrPort) (pid uint32, ok bool) {
	if len(table) < 4 {
		return 0, false
	}
	rows := int(binary.LittleEndian.Uint32(table))
	for b := table[4:]; rows > 0 && len(b) >= rowSize; b, rows = b[rowSize:], rows-1 {
		at := func(offset int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[offset:offset+4])), binary.BigEndian.Uint16(b[offset+4:]))
		}
		state := binary.LittleEndian.Uint32(b)
		if at(4) == local && at(12) == remote && state >= rowEstablished && state <= rowLastAck {
			return binary.LittleEndian.Uint32(b[20:]), true
		}
	}
	return 0, false
}
