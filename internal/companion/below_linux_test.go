package companion

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1: a page's connection that an agent's process holds is the agent's, whoever else was given it.
func TestPageThatAnAgentHolds(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for env, decides := range map[string]bool{"NOTHING=1": true, "GEMINI_CLI=1": false} {
		conn, err := net.DialTCP("tcp", nil, ln.Addr().(*net.TCPAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // this process holds it too
		f, err := conn.File()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("cat")
		cmd.Env, cmd.ExtraFiles = append(os.Environ(), env), []*os.File{f}
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { in.Close(); _ = cmd.Wait() }()
		f.Close()
		page, server := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String())
		if err := c.pageDecides(t.Context(), page, server); (err == nil) != decides {
			t.Errorf("held by a process with %s: %v", env, err)
		}
	}
}

// SPEC §11.1: a page's connection that nobody is seen to hold is an agent's, when a process of an agent's may hide it.
func TestPageThatAnAgentHides(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for env, decides := range map[string]bool{"NOTHING=1": true, "GEMINI_CLI=1": false} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), env, hidesVariable+"="+ln.Addr().String())
		in, out := child.Start(t, cmd)
		defer func() { in.Close(); _ = cmd.Wait() }()
		_, _ = in.Write([]byte("\n"))
		port, _ := bufio.NewReader(out).ReadString('\n')
		page, err := netip.ParseAddrPort("127.0.0.1:" + strings.TrimSpace(port))
		server := netip.MustParseAddrPort(ln.Addr().String())
		if err != nil {
			t.Fatalf("%q: %v", port, err)
		}
		conn, err := ln.Accept() // before, the system says of nobody that it holds the other end
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if seen := proc.Peers(page, server); len(seen) != 0 {
			t.Fatalf("processes %v are seen to hold it", seen)
		}
		if err := c.pageDecides(t.Context(), page, server); (err == nil) != decides {
			t.Errorf("hidden by a process with %s: %v", env, err)
		}
	}
}
