package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

func peer(client, server netip.AddrPort) (int, bool) {
	table := "/proc/net/tcp"
	if client.Addr().Is6() {
		table = "/proc/net/tcp6"
	}
	f, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	inode, ok := findSocket(f, client, server, os.Getuid())
	if !ok {
		return 0, false
	}
	return socketHolder("socket:[" + inode + "]")
}

// findSocket looks in a table of /proc/net/tcp's form for the socket of this
// uid that is bound to local and connected to remote.
func findSocket(r io.Reader, local, remote netip.AddrPort, uid int) (inode string, ok bool) {
	wantLocal, wantRemote, wantUID := kernelAddr(local), kernelAddr(remote), strconv.Itoa(uid)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// sl local rem st tx:rx tr:when retrnsmt uid timeout inode
		fields := strings.Fields(lines.Text())
		if len(fields) >= 10 && fields[1] == wantLocal && fields[2] == wantRemote {
			return fields[9], fields[7] == wantUID && fields[9] != "0"
		}
	}
	return "", false
}

// kernelAddr is an address as the kernel's tables show it: 32-bit words in the machine's byte order, in hex.
func kernelAddr(a netip.AddrPort) string {
	b := a.Addr().AsSlice()
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(b)), a.Port())
}

// socketHolder finds the process with an open descriptor of that name; of several (a
// parent and a child that inherited it) the oldest PID.
func socketHolder(name string) (int, bool) {
	procs, err := os.Open("/proc")
	if err != nil {
		return 0, false
	}
	defer procs.Close()
	names, err := procs.Readdirnames(-1)
	if err != nil {
		return 0, false
	}
	best := 0
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || best != 0 && pid > best {
			continue
		}
		if holds(n, name) {
			best = pid
		}
	}
	return best, best != 0
}

func holds(pid, name string) bool {
	dir, err := os.Open("/proc/" + pid + "/fd")
	if err != nil {
		return false // another user's, or gone
	}
	defer dir.Close()
	fds, _ := dir.Readdirnames(4096)
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/" + pid + "/fd/" + fd); err == nil && target == name {
			return true
		}
	}
	return false
}
