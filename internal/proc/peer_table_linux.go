package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// findInTables is find for kernels without netlink answers. It reads tables that grow with the number of connections.
func findInTables(dir string, local, remote netip.AddrPort) (end, error) {
	tables := []struct {
		name string
		addr func(netip.Addr) []byte
	}{
		{"tcp", netip.Addr.AsSlice},
		// An IPv6 socket that speaks IPv4 is listed there with mapped addresses.
		{"tcp6", func(a netip.Addr) []byte { b := a.As16(); return b[:] }},
	}
	if local.Addr().Is6() {
		tables = tables[1:]
	}
	var found error
	for i, table := range tables {
		f, err := os.Open(filepath.Join(dir, table.name))
		if err != nil {
			if i == 0 {
				return end{}, err
			}
			break // a system without IPv6
		}
		e, err := findInTable(f, kernelAddr(table.addr(local.Addr()), local.Port()), kernelAddr(table.addr(remote.Addr()), remote.Port()), endOf)
		f.Close()
		if err == nil || errors.Is(err, errQueued) {
			return e, err
		}
		found = err
	}
	return end{}, found
}

// findListener finds the socket that accepts connections to an address in the same tables: first one with that
// address, then one for every address.
func findListener(dir string, local netip.AddrPort) (end, error) {
	v6 := local.Addr().As16()
	for _, place := range []struct {
		table string
		addr  []byte
	}{
		{"tcp", local.Addr().AsSlice()}, {"tcp6", v6[:]},
		{"tcp", make([]byte, 4)}, {"tcp6", make([]byte, 16)},
	} {
		if local.Addr().Is6() && place.table == "tcp" {
			continue
		}
		f, err := os.Open(filepath.Join(dir, place.table))
		if err != nil {
			continue
		}
		e, err := findInTable(f, kernelAddr(place.addr, local.Port()), kernelAddr(make([]byte, len(place.addr)), 0), listenerOf)
		f.Close()
		if err == nil {
			return e, nil
		}
	}
	return end{}, errNoEnd
}

// findInTable finds a socket in a table in the format of /proc/net/tcp.
func findInTable(r io.Reader, local, remote string, read readEnd) (end, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// sl local rem st tx:rx tr:when retrnsmt uid timeout inode
		line := lines.Text()
		if !strings.Contains(line, local) {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[1] != local || fields[2] != remote {
			continue
		}
		state, err := strconv.ParseUint(fields[3], 16, 8)
		uid, err2 := strconv.ParseUint(fields[7], 10, 32)
		inode, err3 := strconv.ParseUint(fields[9], 10, 64)
		if err != nil || err2 != nil || err3 != nil {
			return end{}, errNoEnd
		}
		return read(byte(state), uint32(uid), inode)
	}
	if err := lines.Err(); err != nil {
		return end{}, err
	}
	return end{}, errNoEnd
}

// kernelAddr returns an address in the format of the kernel's tables: 32-bit words in the machine's byte order, in
// hex.
func kernelAddr(b []byte, port uint16) string {
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(b)), port)
}
