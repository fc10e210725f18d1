package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/pollux-companion/pollux/e2e/child"
)

// apartVariable tells a process that Start has begun what it is there for: the address of a companion's port.
const apartVariable = "POLLUX_TEST_AGENT_OF"

// Main is called first of all in TestMain where Start is used: in a process that Start has begun it does that one's work and
// does not return.
func Main() {
	if address := os.Getenv(apartVariable); address != "" {
		if err := passOn(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// Start is Connect by a process of its own, as a CLI is one: the companion, which the test has started itself, must not
// take it for an agent's (SPEC §11.1). The process may be started by words before its command. TestMain calls Main.
func Start(t testing.TB, discoveryFile string, by ...string) *Agent {
	t.Helper()
	found := read(t, discoveryFile)
	return dial(t, found.Port, found.Token, Apart(t, found.Port, by...))
}

// Apart returns a transport whose connections to a companion's port come from a process of their own, which may be
// started by words before its command. TestMain calls Main.
func Apart(t testing.TB, port int, by ...string) *http.Transport {
	t.Helper()
	if os.Getenv(apartVariable) != "" {
		t.Fatal("call agent.Main first of all in TestMain")
	}
	words := append(by, os.Args[0], "-test.run=^$")
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=127.0.0.1:%d", apartVariable, port))
	cmd.Stderr = os.Stderr
	in, out := child.Start(t, cmd)
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, strings.TrimSpace(address))
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// passOn listens on a port of its own, says which, and passes each connection on to address, until standard input ends.
func passOn(address string) error {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	go func() {
		for {
			here, err := ln.Accept()
			if err != nil {
				return
			}
			go join(here, address)
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// join passes on in both directions; the end of either is the end of its connection.
func join(here net.Conn, address string) {
	defer here.Close()
	there, err := net.Dial("tcp4", address)
	if err != nil {
		return
	}
	defer there.Close()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{here, there}, {there, here}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}
