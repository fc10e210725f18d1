package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// elsewhereTo makes this program the process that elsewhere starts.
const elsewhereTo = "POLLUX_E2E_ELSEWHERE"

// elsewhere is the address of a process that passes connections on to a port. A CLI of the test's own that connects through it is
// not the process that started the companion, which may decide nothing about that one's changes (SPEC §11.1).
func elsewhere(t testing.TB, port int) string {
	t.Helper()
	address, end := passing(t, port)
	t.Cleanup(end)
	return address
}

// passing is elsewhere, until end is called.
func passing(t testing.TB, port int) (address string, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=127.0.0.1:%d", elsewhereTo, port))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // it ends with this process
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
	end = func() { in.Close(); _ = cmd.Wait() }
	address, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		end()
		t.Fatal(err)
	}
	return strings.TrimSpace(address), end
}

// passOn is that process: until its input ends.
func passOn(to string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go passOne(c, to)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func passOne(c net.Conn, to string) {
	defer c.Close()
	d, err := net.Dial("tcp4", to)
	if err != nil {
		return
	}
	defer d.Close()
	go func() { _, _ = io.Copy(d, c); d.Close() }()
	_, _ = io.Copy(c, d)
}

// serveApart starts pollux serve as no child of this process: one that proposes and decides itself, as conform does, is an
// agent, and a companion below an agent shows none of its diffs (SPEC §11.1).
func (b *bench) serveApart(args ...string) *companion {
	b.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command("setsid", append([]string{"--fork", shared.pollux, "serve", "--no-open", "--json"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir, b.home.Env(), w, os.Stderr
	err = cmd.Run()
	w.Close()
	if err != nil {
		b.t.Fatal(err)
	}
	c := &companion{b: b}
	out := bufio.NewReader(r)
	text, err := out.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(text), c)
	}
	if err != nil {
		b.t.Fatalf("pollux serve says %q: %v", text, err)
	}
	b.t.Cleanup(func() {
		if p, err := os.FindProcess(c.PID); err == nil {
			_ = p.Signal(syscall.SIGTERM)
		}
		_, _ = io.Copy(io.Discard, out) // until it has ended
		r.Close()
	})
	return c
}
