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
