package proc

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
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
		if pids := Peers(client, server); !slices.Equal(pids, []int{os.Getpid()}) {
			t.Errorf("%s: processes %d; want %d", host, pids, os.Getpid())
		}
		if pids := Peers(netip.AddrPortFrom(client.Addr(), 1), server); len(pids) > 0 {
			t.Errorf("a connection that is not there belongs to %d", pids)
		}
	}
	if len(Peers(netip.MustParseAddrPort("10.0.0.1:5"), netip.MustParseAddrPort("127.0.0.1:6"))) > 0 {
		t.Error("an address of another machine has a process")
	}
}

// Whoever was given a connection holds it too, until it ends.
func TestPeersThatWereGivenIt(t *testing.T) {
	ln := listen(t)
	w := connect(t, ln, dialer(ln))
	client := netip.MustParseAddrPort(w.client.LocalAddr().String())
	server := netip.MustParseAddrPort(w.client.RemoteAddr().String())
	f, err := w.client.File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{f}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	want := []int{os.Getpid(), cmd.Process.Pid}
	slices.Sort(want)
	for range 2 { // the second is from memory
		if got := Peers(client, server); !slices.Equal(got, want) {
			t.Errorf("%d, want %d", got, want)
		}
	}
	in.Close()
	_ = cmd.Wait()
	if got := Peers(client, server); !slices.Equal(got, []int{os.Getpid()}) {
		t.Errorf("the other has ended: %d, want %d", got, os.Getpid())
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
