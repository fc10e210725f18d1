package companion

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC A-5: no other user gets a companion's port beside it, whatever address and options they ask for; and a listener of theirs on the
// same number of another address gets none of its connections.
func TestNobodyBindsBesideA5(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	page, err := c.PageAddress()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	share := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
	}}
	for _, port := range []string{fmt.Sprint(c.Info().Port), u.Port()} {
		for _, at := range []struct {
			network, host string
			beside        bool // they may have it: it is another address
		}{
			{"tcp4", "127.0.0.1", false}, {"tcp4", "0.0.0.0", false}, {"tcp", "::", false}, {"tcp6", "::ffff:127.0.0.1", false},
			{"tcp4", "127.0.0.2", true}, {"tcp6", "::1", true},
		} {
			var ln net.Listener
			var err error
			if !usertest.Do(t, func() { ln, err = share.Listen(context.Background(), at.network, net.JoinHostPort(at.host, port)) }) {
				return
			}
			if err != nil {
				continue
			}
			if !at.beside {
				t.Errorf("another user listens at %s beside the companion", ln.Addr())
			}
			conn, err := net.Dial("tcp4", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
			_ = ln.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Millisecond)) // nobody is in the queue
			if conn, err := ln.Accept(); err == nil {
				conn.Close()
				t.Errorf("another user at %s has the connection", ln.Addr())
			}
			ln.Close()
		}
	}
}

// A falseKeeper says that it keeps a workspace, and hands on whatever it likes.
type falseKeeper struct {
	control.Backend // nothing else is asked of it
	status          control.Status
	handing         control.Handing
	door            *os.File
}

func (k *falseKeeper) Status() control.Status                    { return k.status }
func (k *falseKeeper) Agents(context.Context) (a control.Agents) { return a }
func (k *falseKeeper) Meet(...proc.Info)                         {}
func (k *falseKeeper) Lend(any, *state.Snapshot, bool)           {}
func (k *falseKeeper) Sessions() []control.Session               { return nil }
func (k *falseKeeper) HandOver() (control.Handing, *os.File, func(), error) {
	return k.handing, k.door, func() {}, nil
}

// SPEC L-4, A-5: a false keeper keeps no companion from starting, and makes none serve on a socket that is not its own port's: it may hand
// on another port's, one that the whole network reaches, one of another kind, or none.
func TestFalseKeeperL4(t *testing.T) {
	file := func(network, address string) func(t *testing.T) *os.File {
		return func(t *testing.T) *os.File {
			ln, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			f, err := ln.(interface{ File() (*os.File, error) }).File()
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	for name, open := range map[string]func(*testing.T) *os.File{
		"another port's":         file("tcp4", "127.0.0.1:0"),
		"the whole network's":    file("tcp4", "0.0.0.0:0"),
		"another kind of socket": file("unix", ""),
		"a file":                 func(t *testing.T) *os.File { f, _ := os.Open(os.DevNull); return f },
		"nothing":                func(*testing.T) *os.File { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			o, a, _ := options(t)
			c := start(t, o)
			port := c.Info().Port
			_ = c.Stop(t.Context())
			k := &falseKeeper{
				status:  control.Status{PID: 1 << 30, Editor: c.o.IDE.Name, Roots: []string{a}, Started: time.Now(), Keeper: true},
				handing: control.Handing{Editor: c.o.IDE.Name, Roots: []string{a}, Port: port}, door: open(t),
			}
			s, err := control.Listen(o.Dirs.Run, k, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if c = start(t, o); c.Info().Port != port || !c.Info().Resumed {
				t.Errorf("%+v; want to resume at %d", c.Info(), port)
			}
			if _, err := c.PageAddress(); err != nil {
				t.Error(err)
			}
		})
	}
}

// SPEC A-5: a socket that another user was able to put among the companions' is told nothing, and keeps nobody from starting.
func TestForeignKeeperA5(t *testing.T) {
	o, _, _ := options(t)
	run := o.Dirs.Run[0]
	for _, dir := range []string{filepath.Dir(run), run} {
		_ = os.Mkdir(dir, 0o700)
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var ln net.Listener
	var err error
	if !usertest.Do(t, func() { ln, err = net.Listen("unix", filepath.Join(run, "1-abcdef.sock")) }) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	heard := make(chan string, 1)
	go func() {
		defer close(heard)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "Content-Length: 60\r\n\r\n"+`{"jsonrpc":"2.0","id":1,"result":{"keeper":true,"pid":1}}   `)
			if b, _ := io.ReadAll(conn); len(b) > 0 {
				heard <- string(b)
			}
			conn.Close()
		}
	}()
	if c := start(t, o); len(c.others) != 0 {
		t.Errorf("it takes them for companions: %+v", c.others)
	}
	ln.Close()
	if got, more := <-heard; more {
		t.Errorf("it was told %q", got)
	}
}

// A program that has nothing to do with pollux, and has the old port, costs a start no time (SPEC L-3).
func TestStartsBesideAnotherProgram(t *testing.T) {
	o, _, _ := options(t)
	first := start(t, o)
	port := first.Info().Port
	door, err := duplicate(first.door)
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "600")
	other.ExtraFiles = []*os.File{door}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	door.Close()
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	next := start(t, o)
	if took := time.Since(began); took > claimWithin*3/4 || next.Info().Port == port {
		t.Errorf("it has started after %v at port %d, where process %d listens at %d", took, next.Info().Port, other.Process.Pid, port)
	}
}
