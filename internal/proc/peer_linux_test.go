package proc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/usertest"
)

// finders are the ways to find an end; all must agree.
func finders(t testing.TB) map[string]func(local, remote netip.AddrPort) (end, error) {
	t.Helper()
	d, err := openDiag()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(d.fd) })
	return map[string]func(local, remote netip.AddrPort) (end, error){
		"netlink": d.find,
		"tables":  func(l, r netip.AddrPort) (end, error) { return findInTables("/proc/self/net", l, r) },
	}
}

// A wire is a connection with both ends in this process.
type wire struct{ client, server *net.TCPConn }

func (w wire) close() { w.client.Close(); w.server.Close() }

func listen(t testing.TB) *net.TCPListener {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.(*net.TCPListener)
}

func connect(t testing.TB, ln *net.TCPListener, dial func() (net.Conn, error)) wire {
	t.Helper()
	client, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	server, err := ln.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	w := wire{client.(*net.TCPConn), server}
	t.Cleanup(w.close)
	return w
}

func dialer(ln net.Listener) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial("tcp4", ln.Addr().String()) }
}

// mapped dials IPv4 from a socket for IPv6.
func mapped(t testing.TB, ln net.Listener) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Logf("no IPv6 here: %v", err)
			return dialer(ln)()
		}
		addr := &unix.SockaddrInet6{Port: ln.Addr().(*net.TCPAddr).Port, Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
		if err := unix.Connect(fd, addr); err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "mapped")
		defer f.Close()
		return net.FileConn(f)
	}
}

// SPEC A-5: who is let in, both by netlink and by the tables.
func TestCheckPeerA5(t *testing.T) {
	if err := TellsPeers(); err != nil {
		t.Fatal(err)
	}
	ln := listen(t)
	for name, find := range finders(t) {
		t.Run(name, func(t *testing.T) {
			check := func(what string, w wire, want error) {
				t.Helper()
				if err := checkPeer(w.server, find); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", what, err, want)
				}
			}
			check("own", connect(t, ln, dialer(ln)), nil)
			check("own, IPv6-mapped", connect(t, ln, mapped(t, ln)), nil)
			half := connect(t, ln, dialer(ln))
			half.client.CloseWrite()
			check("own, half closed", half, nil)

			var conn net.Conn
			var err error
			if !usertest.Do(t, func() { conn, err = dialer(ln)() }) {
				return
			}
			other := connect(t, ln, func() (net.Conn, error) { return conn, err })
			check("another user's", other, ErrForeign)
			other.client.CloseWrite()
			check("another user's, half closed", other, ErrForeign)
			usertest.Do(t, func() { conn, err = mapped(t, ln)() })
			other = connect(t, ln, func() (net.Conn, error) { return conn, err })
			check("another user's, IPv6-mapped", other, ErrForeign)
		})
	}
}

// SPEC A-5: a socket that its process has closed belongs to nobody, though the kernel says root. What it sent before
// is not read.
func TestGonePeerA5(t *testing.T) {
	ln := listen(t)
	for name, find := range finders(t) {
		for how, leave := range map[string]func(*net.TCPConn){
			"closed":                                func(c *net.TCPConn) { c.Close() },
			"reset":                                 func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
			"closed with data that nobody has read": func(c *net.TCPConn) { io.WriteString(c, "GET"); c.Close() },
		} {
			w := connect(t, ln, dialer(ln))
			leave(w.client)
			waitFor(t, func() bool { return !errors.Is(checkPeer(w.server, find), nil) })
			if err := checkPeer(w.server, find); !errors.Is(err, ErrForeign) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
	}
}

func waitFor(t *testing.T, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

// SPEC A-5: a stranger's connection does not become this user's when this user's next connection gets its addresses.
func TestReusedAddressesA5(t *testing.T) {
	ln := listen(t)
	pid := os.Getpid()
	dial := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(pid>>16), byte(pid>>8), byte(pid))}} // another program may get a free port of 127.0.0.1
	first := connect(t, ln, func() (net.Conn, error) { return dial.Dial("tcp4", ln.Addr().String()) })
	from := first.client.LocalAddr().(*net.TCPAddr)
	io.WriteString(first.client, "a stranger's")
	first.client.SetLinger(0)
	first.client.Close() // a reset: its addresses are free at once, and its bytes are still there
	dial.LocalAddr = from
	second := connect(t, ln, func() (net.Conn, error) { return dial.Dial("tcp4", ln.Addr().String()) })
	for name, find := range finders(t) {
		if err := checkPeer(first.server, find); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: the first connection: %v", name, err)
		}
		if err := checkPeer(second.server, find); err != nil {
			t.Errorf("%s: the second: %v", name, err)
		}
	}
}

// SPEC A-5: without a connection, a listener on the client's port is not mistaken for it.
func TestListenerIsNoPeerA5(t *testing.T) {
	ln, other := listen(t), listen(t)
	local, _ := addrPort(other.Addr())
	remote, _ := addrPort(ln.Addr())
	for name, find := range finders(t) {
		if e, err := find(local, remote); !errors.Is(err, errNoEnd) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// Without the table, or with a table that does not show this process, the result is errUntold.
func TestUntold(t *testing.T) {
	empty := t.TempDir()
	for _, name := range []string{"tcp", "tcp6"} {
		os.WriteFile(filepath.Join(empty, name), []byte("sl local\n"), 0o600)
	}
	for what, dir := range map[string]string{"no table": filepath.Join(empty, "none"), "another namespace's": empty} {
		err := tryEnds(func(l, r netip.AddrPort) (end, error) { return findInTables(dir, l, r) })
		if !errors.Is(err, errUntold) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, tt := range map[string]struct {
		uid     int
		mapped  string
		unknown bool
	}{
		"the first namespace":         {65534, "         0          0 4294967295\n", false},
		"a namespace that maps us":    {1000, "1000 1000 1\n", false},
		"a namespace without a map":   {65534, "", true},
		"one that maps others":        {65534, "0 1000 1\n", true},
		"this user, without a number": {65534, "1 1 65533\n", true},
	} {
		proc := t.TempDir()
		os.MkdirAll(filepath.Join(proc, "sys/kernel"), 0o700)
		os.MkdirAll(filepath.Join(proc, "self"), 0o700)
		os.WriteFile(filepath.Join(proc, "sys/kernel/overflowuid"), []byte("65534\n"), 0o600)
		os.WriteFile(filepath.Join(proc, "self/uid_map"), []byte(tt.mapped), 0o600)
		if err := knowsUsers(tt.uid, proc); (err != nil) != tt.unknown {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Truncated, odd or unrelated tables and answers yield no end, and no panic.
func TestOddTables(t *testing.T) {
	local, remote := netip.MustParseAddrPort("127.0.0.1:4660"), netip.MustParseAddrPort("127.0.0.1:80")
	a, b := kernelAddr(local.Addr().AsSlice(), local.Port()), kernelAddr(remote.Addr().AsSlice(), remote.Port())
	if !strings.HasSuffix(a, ":1234") {
		t.Errorf("the port is not in hex: %s", a)
	}
	line := "   0: " + a + " " + b + " 01 0:0 0:0 0  %s 0 %s 1\n"
	for uid, inode := range map[string]string{fmt.Sprint(os.Geteuid()): "777", "4000000000": "5"} {
		e, err := findInTable(strings.NewReader(fmt.Sprintf(line, uid, inode)), a, b, endOf)
		if err != nil || fmt.Sprint(e.inode) != inode || e.mine != (inode == "777") {
			t.Errorf("%s: %+v, %v", uid, e, err)
		}
	}
	for _, odd := range []string{"", line[:30], fmt.Sprintf(line, "x", "7"), fmt.Sprintf(line, "0", "0"),
		strings.Replace(fmt.Sprintf(line, "0", "7"), " 01 ", " 0A ", 1), strings.Replace(fmt.Sprintf(line, "0", "7"), " 01 ", " 06 ", 1), strings.Repeat("x", 1<<20)} {
		if e, err := findInTable(strings.NewReader(odd), a, b, endOf); err == nil {
			t.Errorf("%.60q: %+v", odd, e)
		}
	}
}

func FuzzReadDiag(f *testing.F) {
	local, remote := netip.MustParseAddrPort("127.0.0.1:4660"), netip.MustParseAddrPort("127.0.0.1:80")
	var ask [diagAsk]byte
	askDiag(&ask, 7, local, remote)
	f.Add(ask[:])
	f.Add(append(ask[:], make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, answers, err := readDiag(b, 7, local, remote, endOf); answers && err == nil && e.inode == 0 {
			t.Errorf("%+v", e)
		}
	})
}

// One scan of the processes serves everybody who asks for a socket that it found.
func TestOneLookForAll(t *testing.T) {
	ln := listen(t)
	var inodes []uint64
	for range 50 {
		w := connect(t, ln, dialer(ln))
		local, _ := addrPort(w.client.LocalAddr())
		remote, _ := addrPort(w.client.RemoteAddr())
		e, err := (&ends{}).find(local, remote)
		if err != nil {
			t.Fatal(err)
		}
		inodes = append(inodes, e.inode)
	}
	looks := 0
	var h heldSockets
	for _, inode := range inodes {
		pids := h.find(inode, func() map[uint64][]socketHolder { looks++; return lookAtSockets() })
		if !slices.Equal(pids, []int{os.Getpid()}) {
			t.Fatalf("%d", pids)
		}
	}
	if looks != 1 {
		t.Errorf("%d looks for %d sockets", looks, len(inodes))
	}
	// The result of a scan is verified, because descriptors and PIDs are reused.
	h.known[1] = []socketHolder{{os.Getpid(), 0}}
	if pids := h.find(1, func() map[uint64][]socketHolder { looks++; return nil }); len(pids) > 0 || looks != 2 {
		t.Errorf("socket 1 is held by %d after %d looks", pids, looks)
	}
}

// BenchmarkCheckPeer measures what SPEC A-5 adds to an accepted connection (at most 0.1 ms), and its share of the
// total.
func BenchmarkCheckPeer(b *testing.B) {
	for _, others := range []int{0, 2000} {
		ln := listen(b)
		for range others {
			connect(b, ln, dialer(ln))
		}
		for name, find := range finders(b) {
			b.Run(fmt.Sprintf("%s/%d", name, others), func(b *testing.B) {
				var accepting, checking time.Duration
				for b.Loop() {
					begun := time.Now()
					client, err := net.Dial("tcp4", ln.Addr().String())
					if err != nil {
						b.Fatal(err)
					}
					server, err := ln.Accept()
					if err != nil {
						b.Fatal(err)
					}
					accepted := time.Now()
					if err := checkPeer(server, find); err != nil {
						b.Fatal(err)
					}
					checking += time.Since(accepted)
					accepting += accepted.Sub(begun)
					client.(*net.TCPConn).SetLinger(0)
					client.Close()
					server.Close()
				}
				b.ReportMetric(float64(checking.Microseconds())/float64(b.N), "check-µs")
				b.ReportMetric(float64(checking)/float64(accepting), "ratio")
			})
		}
	}
}

// SPEC A-5: a client knows the owner of the listener before and after it accepts, whether the listener has a specific
// address or the unspecified one.
func TestCheckServerA5(t *testing.T) {
	d, err := openDiag()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(d.fd) })
	for name, all := range map[string]*ends{"netlink": {diag: d}, "tables": {}} {
		check := func(conn net.Conn) error {
			server, _ := addrPort(conn.RemoteAddr())
			client, _ := addrPort(conn.LocalAddr())
			return checkServer(conn, server, client, all.find, all.listener)
		}
		for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0"} {
			for who, open := range map[string]func(func()) bool{"own": func(f func()) bool { f(); return true }, "another user's": func(f func()) bool { return usertest.Do(t, f) }} {
				var ln net.Listener
				if !open(func() { ln, err = net.Listen("tcp", address) }) {
					continue
				}
				if err != nil {
					t.Logf("%s: %v", address, err) // no IPv6 here
					continue
				}
				want := error(nil)
				if who != "own" {
					want = ErrForeign
				}
				host, _, _ := net.SplitHostPort(address)
				if host != "::1" {
					host = "127.0.0.1"
				}
				conn, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(ln.Addr().(*net.TCPAddr).Port)))
				if err != nil {
					t.Fatal(err)
				}
				if err := check(conn); !errors.Is(err, want) {
					t.Errorf("%s, %s, %s, not accepted: %v, want %v", name, address, who, err, want)
				}
				open(func() {
					if c, err := ln.Accept(); err == nil {
						t.Cleanup(func() { c.Close() })
					}
				})
				if err := check(conn); !errors.Is(err, want) {
					t.Errorf("%s, %s, %s, accepted: %v, want %v", name, address, who, err, want)
				}
				ln.Close()
				conn.Close()
			}
		}
		// A listener closes with the connection in its queue, and this user opens another in its place.
		first := listen(t)
		conn, err := dialer(first)()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		address := first.Addr().String()
		first.Close()
		second, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(conn); !errors.Is(err, errUntold) {
			t.Errorf("%s: a listener in the place of another: %v", name, err)
		}
		second.Close()
	}
}

// A process that hides its descriptors from its own user may hold what nobody is seen to hold. It is asked about when it is picked.
func TestMayHold(t *testing.T) {
	ln := listen(t)
	dir := t.TempDir()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(bash)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hides"), program, 0o111) // a program that cannot be read cannot be looked into
	}
	if err != nil {
		t.Fatal(err)
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hides := exec.Command(filepath.Join(dir, "hides"), "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; read", ln.Addr().(*net.TCPAddr).Port))
	hides.Dir = "/"
	if os.Geteuid() == 0 {
		hides.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: usertest.ID, Gid: usertest.ID}}
	}
	in, err := hides.StdinPipe()
	if err == nil {
		err = hides.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = hides.Wait() }()
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, server := netip.MustParseAddrPort(conn.RemoteAddr().String()), netip.MustParseAddrPort(conn.LocalAddr().String())
	asTheirs := func() {
		if seen := Peers(client, server); len(seen) != 0 {
			t.Errorf("processes %v are seen to hold it", seen)
		}
		if !MayHold(client, server, func(pid int) bool { return pid == hides.Process.Pid }) {
			t.Error("the process that holds it may not hold it")
		}
		if MayHold(client, server, func(pid int) bool { return pid == os.Getppid() }) {
			t.Error("others may hold it")
		}
	}
	if os.Geteuid() != 0 {
		asTheirs()
		return
	}
	usertest.Do(t, asTheirs)
}
