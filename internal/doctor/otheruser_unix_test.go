//go:build unix

package doctor

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC A-5: where another user has a companion's port, doctor and status say so, and tell them nothing.
func TestOtherUserListensA5(t *testing.T) {
	p := newPatient(t, func(o *clienttest.Options) {})
	var ln net.Listener
	var err error
	if !usertest.Do(t, func() { ln, err = net.Listen("tcp4", "127.0.0.1:0") }) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p.file(func(m map[string]any) { m["port"] = ln.Addr().(*net.TCPAddr).Port })
	said := make(chan string, 16)
	hear := func() {
		_ = ln.(*net.TCPListener).SetDeadline(time.Now().Add(time.Second))
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(conn)
			said <- string(text)
			conn.Close()
		}
	}
	f, ok := p.examine().find("token")
	if !ok || f.Level != Fault || !strings.Contains(f.What, "another user's") {
		t.Errorf("doctor says %+v", f)
	}
	for _, c := range Survey(t.Context(), nil, []string{p.options().World.Folder()}, p.dir) {
		if c.Health != Stranger || !strings.Contains(c.Note, "another user's") {
			t.Errorf("status says %+v", c)
		}
	}
	hear()
	if len(said) < 2 {
		t.Errorf("asked %d times", len(said))
	}
	for len(said) > 0 {
		if text := <-said; text != "" {
			t.Errorf("they were told %q", text)
		}
	}
}
