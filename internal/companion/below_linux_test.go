package companion

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
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
