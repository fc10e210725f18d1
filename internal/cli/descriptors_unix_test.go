//go:build unix

package cli

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// SPEC A-4: with 64 descriptors, many silent connections to both ports delay nobody for the ten seconds that they
// last. The CLI's requests are answered, and the page loads.
func TestFewDescriptorsA4(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command("sh", "-c", "ulimit -n 64; exec pollux serve --no-open --json")
	cmd.Dir, cmd.Env = w.project, w.env
	l := w.start(cmd)
	origin, _, _ := strings.Cut(l.Page, "/#")
	for _, address := range []string{fmt.Sprintf("127.0.0.1:%d", l.Port), strings.TrimPrefix(origin, "http://")} {
		for range 100 {
			conn, err := net.Dial("tcp4", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
		}
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(address string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+l.token())
		watch := pace.Start(t)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if took := watch.Took(); took > pace.Slack*2*time.Second || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s after %v", address, res.Status, took)
		}
	}
	for range 5 {
		ask(fmt.Sprintf("http://127.0.0.1:%d/keep-alive", l.Port))
		ask(origin + "/")
	}
	newCLI(t, l).stream()
}

// SPEC A-4: whoever has the token cannot use up all descriptors: beyond the bound a connection gets 503 and the reason, and the user's
// commands, the page and the open sessions go on.
func TestTokenTakesDescriptorsA4(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command("sh", "-c", "ulimit -n 48; exec pollux serve --no-open --json")
	cmd.Dir, cmd.Env = w.project, w.env
	l := w.start(cmd)
	cli := newCLIApart(t, l)
	refused := 0
	for range 60 {
		conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", l.Port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "GET /keep-alive HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n", l.Port, l.token())
		answer := make([]byte, 4096)
		n, err := conn.Read(answer)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		switch said := string(answer[:n]); {
		case strings.HasPrefix(said, "HTTP/1.1 200"):
		case strings.HasPrefix(said, "HTTP/1.1 503") && strings.Contains(said, "ulimit -n"):
			refused++
		default:
			t.Fatal(said)
		}
	}
	if refused < 40 {
		t.Errorf("%d are refused", refused)
	}
	for _, args := range [][]string{{"env"}, {"page"}, {"status"}, {"resume"}} {
		if out, err := w.command(args...).CombinedOutput(); err != nil {
			t.Errorf("pollux %s: %v: %s", args, err, out)
		}
	}
	origin, _, _ := strings.Cut(l.Page, "/#")
	for range 5 {
		res, err := http.Get(origin + "/")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	cli.ask(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
}
