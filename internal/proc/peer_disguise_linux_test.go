package proc

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC A-5: another user's socket stays another user's, however they dress it up: given to this user by fchown, opened as root of a user
// namespace of their own, passed on to a process of this user's, bound to an address that this user had.
func TestDisguisedPeerA5(t *testing.T) {
	ln := listen(t)
	foreign := func(t *testing.T, conn net.Conn) {
		t.Helper()
		for name, find := range finders(t) {
			if err := checkPeer(conn, find); !errors.Is(err, ErrForeign) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if !usertest.Do(t, func() {}) {
		return
	}
	t.Run("given away", func(t *testing.T) {
		var client net.Conn
		var err, given error
		usertest.Do(t, func() {
			if client, err = dialer(ln)(); err != nil {
				return
			}
			raw, _ := client.(*net.TCPConn).SyscallConn()
			_ = raw.Control(func(fd uintptr) { given = unix.Fchown(int(fd), 0, 0) })
		})
		w := connect(t, ln, func() (net.Conn, error) { return client, err })
		if given == nil {
			t.Error("they could give the socket to this user")
		}
		foreign(t, w.server)
	})
	t.Run("passed on to a process of this user's", func(t *testing.T) {
		var client net.Conn
		var err error
		usertest.Do(t, func() { client, err = dialer(ln)() })
		w := connect(t, ln, func() (net.Conn, error) { return client, err })
		f, err := w.client.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w.client.Close() // the duplicate is this process's alone
		foreign(t, w.server)
	})
	t.Run("from a port that this user had", func(t *testing.T) {
		first := connect(t, ln, dialer(ln))
		from := first.client.LocalAddr().(*net.TCPAddr)
		_ = first.client.SetLinger(0)
		first.client.Close()
		var client net.Conn
		var err error
		usertest.Do(t, func() { client, err = (&net.Dialer{LocalAddr: from}).Dial("tcp4", ln.Addr().String()) })
		foreign(t, connect(t, ln, func() (net.Conn, error) { return client, err }).server)
	})
	t.Run("as root of their own namespace", func(t *testing.T) {
		cmd := exec.Command("unshare", "--user", "--map-root-user", "bash", "-c",
			fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo $UID && cat", ln.Addr().(*net.TCPAddr).Port))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: usertest.ID, Gid: usertest.ID}}
		in, err := cmd.StdinPipe() // it ends with this
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { in.Close(); _ = cmd.Wait() }()
		var uid int
		if _, err := fmt.Fscan(out, &uid); err != nil || uid != 0 {
			t.Logf("other users have no namespaces here (%v)", err)
			return
		}
		server, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		foreign(t, server)
	})
}
