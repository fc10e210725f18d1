//go:build unix

package control

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// SPEC L-4, §11.1: a keeper's listening socket travels over the control channel and goes on listening; the keeper's end begins
// when the other side has it. An agent's own process gets nothing, also while another agent's process is not known.
func TestTakeOverL4(t *testing.T) {
	door := func() (net.Listener, *os.File) {
		ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		f, err := ln.File()
		if err != nil {
			t.Fatal(err)
		}
		return ln, f
	}
	for name, c := range map[string]struct {
		agent   int
		unknown []string
		refused bool
	}{
		"a person's":                          {},
		"a person's, beside an unknown agent": {unknown: []string{"Gemini CLI #1"}},
		"the agent's own":                     {agent: os.Getpid(), refused: true},
		"below the agent":                     {agent: os.Getppid(), refused: true},
		"below one of two":                    {agent: os.Getppid(), unknown: []string{"Gemini CLI #2"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			ln, f := door()
			defer ln.Close()
			over := make(chan struct{})
			b := &fake{reviewed: newReviewed(), agent: c.agent, unknown: c.unknown, status: Status{Editor: "vim", Roots: []string{"/r"}}, door: f, over: func() { close(over) }}
			client, err := Dial(t.Context(), listen(t, []string{shortDir(t)}, b).Path())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			h, got, err := client.TakeOver(t.Context())
			if c.refused {
				if err == nil || err.Error() != ErrFromAgent.Error() || got != nil {
					t.Fatalf("%v, %v, %v", h, got, err)
				}
				if err := client.Stop(t.Context()); err == nil {
					t.Error("an agent ends the keeper")
				}
				return
			}
			if err != nil || h.Editor != "vim" || h.Port != 2 {
				t.Fatalf("%+v, %v", h, err)
			}
			defer got.Close()
			ln.Close() // the keeper's own
			again, err := net.FileListener(got)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			conn, err := net.Dial("tcp4", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
			select {
			case <-over:
			case <-time.After(time.Minute):
				t.Error("the keeper does not end")
			}
		})
	}
}

// What says that it hands a socket on, and does not, is noticed.
func TestTakeOverWithoutL4(t *testing.T) {
	client, err := Dial(t.Context(), listen(t, []string{shortDir(t)}, &fake{reviewed: newReviewed(), over: func() {}}).Path())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, _, err := client.TakeOver(t.Context()); !errors.Is(err, errNotHanded) {
		t.Errorf("%v", err)
	}
}
