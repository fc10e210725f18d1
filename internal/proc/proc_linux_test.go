package proc

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
)

func TestParseStat(t *testing.T) {
	tail := " S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99887 1 2 3"
	for in, want := range map[string]Info{
		"42 (sh)" + tail:         {42, 7, "sh", 99887},
		"42 (a) b) (c d)" + tail: {42, 7, "a) b) (c d", 99887},
		"42 ()" + tail:           {42, 7, "", 99887},
		"42 (sh) S 7":            {},
		"":                       {},
		")(":                     {},
	} {
		if got, ok := parseStat(42, []byte(in)); got != want && ok {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

// The other end of the connection is this process.
func TestPeer(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", host)
		if err != nil {
			t.Logf("no listener on %s: %v", host, err)
			continue
		}
		defer ln.Close()
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client := netip.MustParseAddrPort(conn.LocalAddr().String())
		server := netip.MustParseAddrPort(conn.RemoteAddr().String())
		if pid, ok := Peer(client, server); !ok || pid != os.Getpid() {
			t.Errorf("%s: process %d, %v; want %d", host, pid, ok, os.Getpid())
		}
		if pid, ok := Peer(netip.AddrPortFrom(client.Addr(), 1), server); ok {
			t.Errorf("a connection that is not there belongs to %d", pid)
		}
	}
	if _, ok := Peer(netip.MustParseAddrPort("10.0.0.1:5"), netip.MustParseAddrPort("127.0.0.1:6")); ok {
		t.Error("an address of another machine has a process")
	}
}

func FuzzParseStat(f *testing.F) {
	self, _ := os.ReadFile("/proc/self/stat")
	f.Add(self)
	f.Add([]byte("1 (a) b (c) S"))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, ok := parseStat(1, data)
		if ok && !bytes.Contains(data, []byte(strconv.FormatUint(uint64(info.Start), 10))) && info.Start != 0 {
			t.Errorf("a start of %d out of nothing", info.Start)
		}
	})
}
