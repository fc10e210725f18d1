package proc

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// pcbRecord builds one record of macOS's table.
func pcbRecord(kind uint32, size int, fill func([]byte)) []byte {
	b := make([]byte, (size+7)&^7)
	binary.LittleEndian.PutUint32(b, uint32(size))
	binary.LittleEndian.PutUint32(b[4:], kind)
	fill(b)
	return b
}

// pcbOf builds the records of one socket, with the order and sizes of macOS 15.
func pcbOf(local, remote netip.AddrPort, uid uint32, state byte) []byte {
	b := pcbRecord(pcbInet, 104, func(b []byte) {
		binary.BigEndian.PutUint16(b[inetForeignPort:], remote.Port())
		binary.BigEndian.PutUint16(b[inetLocalPort:], local.Port())
		b[inetVersion] = 1
		copy(b[inetForeign+12:], remote.Addr().AsSlice())
		copy(b[inetLocal+12:], local.Addr().AsSlice())
		if local.Addr().Is6() {
			b[inetVersion] = 2
			copy(b[inetForeign:], remote.Addr().AsSlice())
			copy(b[inetLocal:], local.Addr().AsSlice())
		}
	})
	b = append(b, pcbRecord(pcbSocket, 76, func(b []byte) {
		binary.LittleEndian.PutUint32(b[socketUID:], uid)
		binary.LittleEndian.PutUint32(b[socketPID:], 4242)
	})...)
	for _, kind := range []uint32{0x002, 0x004, 0x008} {
		b = append(b, pcbRecord(kind, 36, func([]byte) {})...)
	}
	return append(b, pcbRecord(pcbTCP, 204, func(b []byte) { b[tcpState] = state })...)
}

// SPEC A-5 on macOS: findPCB returns the user and process of the right socket, and nothing from a truncated or odd
// table.
func TestFindPCB(t *testing.T) {
	server := netip.MustParseAddrPort("127.0.0.1:80")
	mine, other := netip.MustParseAddrPort("127.0.0.1:4660"), netip.MustParseAddrPort("127.0.0.1:4661")
	mine6, server6 := netip.MustParseAddrPort("[::1]:4660"), netip.MustParseAddrPort("[::1]:80")
	table := pcbRecord(0, 24, func([]byte) {})
	for _, b := range [][]byte{pcbOf(server, mine, 7, 4), pcbOf(other, server, 8, 4), pcbOf(mine6, server6, 9, 4), pcbOf(mine, server, 501, 6)} {
		table = append(table, b...)
	}
	for client, uid := range map[netip.AddrPort]uint32{mine: 501, other: 8} {
		if p, ok := findPCB(table, client, server); !ok || p.uid != uid || p.pid != 4242 {
			t.Errorf("%v: %+v, %v", client, p, ok)
		}
	}
	if p, ok := findPCB(table, mine6, server6); !ok || p.uid != 9 {
		t.Errorf("IPv6: %+v, %v", p, ok)
	}
	if p, ok := findPCB(table, server, other); ok {
		t.Errorf("a connection that is not there: %+v", p)
	}
	for n := range len(table) - 4 { // the last four bytes are padding
		if _, ok := findPCB(table[:n], mine, server); ok {
			t.Errorf("found in %d bytes of %d", n, len(table))
		}
	}
}

// SPEC A-5 on Windows: findRow returns the process of exactly this connection, while it exists.
func TestFindRow(t *testing.T) {
	server, client := netip.MustParseAddrPort("127.0.0.1:80"), netip.MustParseAddrPort("127.0.0.1:4660")
	row := func(local, remote netip.AddrPort, state, pid uint32) []byte {
		b := binary.LittleEndian.AppendUint32(nil, state)
		for _, a := range []netip.AddrPort{local, remote} {
			b = append(b, a.Addr().AsSlice()...)
			b = append(binary.BigEndian.AppendUint16(b, a.Port()), 0, 0)
		}
		return binary.LittleEndian.AppendUint32(b, pid)
	}
	table := append([]byte{3, 0, 0, 0}, row(server, client, 5, 1)...)
	table = append(table, row(client, server, 11, 2)...) // TIME_WAIT: an older connection
	table = append(table, row(client, server, 5, 3)...)
	if pid, ok := findRow(table, client, server); !ok || pid != 3 {
		t.Errorf("%d, %v", pid, ok)
	}
	for n := range table {
		if pid, ok := findRow(table[:n], client, server); ok {
			t.Errorf("%d found in %d bytes", pid, n)
		}
	}
}

func FuzzTables(f *testing.F) {
	server, client := netip.MustParseAddrPort("127.0.0.1:80"), netip.MustParseAddrPort("127.0.0.1:4660")
	f.Add(append(pcbRecord(0, 24, func([]byte) {}), pcbOf(client, server, 1, 4)...))
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(_ *testing.T, b []byte) {
		findPCB(b, client, server)
		findRow(b, client, server)
	})
}
