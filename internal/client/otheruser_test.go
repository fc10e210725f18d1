package client

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC A-5: another user who listens on a companion's port never receives its token, whether the client joins,
// listens or links.
func TestOtherUserListensA5(t *testing.T) {
	var ln net.Listener
	var err error
	if !usertest.Do(t, func() { ln, err = net.Listen("tcp4", "127.0.0.1:0") }) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	way := Way{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, Token: "secret"}
	for name, try := range map[string]func() error{
		"Join":   func() error { return New(nil, nil).Join(t.Context(), way) },
		"Dial":   func() error { _, err := Dial(t.Context(), way, LinkOptions{}); return err },
		"Listen": func() error { _, err := Listen(t.Context(), []Way{way}); return err },
	} {
		err := try()
		if !errors.Is(err, proc.ErrForeign) && (err == nil || !strings.Contains(err.Error(), "another user listens")) {
			t.Errorf("%s: %v", name, err)
		}
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(conn); len(said) > 0 {
			t.Errorf("%s: they were told %q, %v", name, said, err)
		}
		conn.Close()
	}
}
