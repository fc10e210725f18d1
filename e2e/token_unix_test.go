//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/internal/control"
)

// A way is a process through which a test speaks to a companion as a CLI.
type way struct {
	*rawCLI
	t *testing.T
}

func (b *bench) way(c *companion) *way {
	b.t.Helper()
	w := &way{newRawCLI(elsewhere(b.t, c.Port), c.Port, tokenOf(b.t, c)), b.t}
	b.t.Cleanup(w.client.CloseIdleConnections)
	return w
}

func (w *way) post(body string) (status int, session, answer string) {
	w.t.Helper()
	res, data, err := w.do(w.t.Context(), http.MethodPost, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Mcp-Session-Id"), string(data)
}

const pings = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// recorded waits until the processes of so many sessions are in the resume record.
func (b *bench) recorded(n int) {
	b.t.Helper()
	b.until("the sessions' processes are on the disk", func() bool {
		files, _ := filepath.Glob(filepath.Join(b.home.Dir, ".local", "state", "pollux", "resume", "*.json"))
		if len(files) != 1 {
			return false
		}
		var record struct {
			Sessions map[string][]struct{ PID int }
		}
		data, err := os.ReadFile(files[0])
		return err == nil && json.Unmarshal(data, &record) == nil && len(record.Sessions) == n
	})
}

// SPEC A-1: after a kill the token of before serves a session from the process that had it, also when a thief with token and session
// id asks first; that process may open a new session; a thief may do nothing.
func TestOlderTokenIsItsProcesses(t *testing.T) {
	b := newBench(t, nil)
	c := b.serve()
	owner, thief := b.way(c), b.way(c)
	if _, owner.session, _ = owner.post(initializes); owner.session == "" {
		t.Fatal("no session")
	}
	b.recorded(1)
	for range 2 { // and once more, after a start that the owner has slept through
		c.end(syscall.SIGKILL)
		owner.client.CloseIdleConnections()
		if c = b.serve(); !c.Resumed {
			t.Fatal("it does not take over")
		}
	}
	if thief.token == tokenOf(t, c) {
		t.Fatal("the token is the old one")
	}
	thief.session = owner.session
	if status, _, _ := thief.post(pings); status != http.StatusUnauthorized {
		t.Errorf("a thief with token and session: %d", status)
	}
	thief.session = ""
	if status, _, _ := thief.post(initializes); status != http.StatusUnauthorized {
		t.Errorf("a thief's new session: %d", status)
	}
	if status, _, answer := owner.post(pings); status != http.StatusOK {
		t.Errorf("the session's own process: %d %s", status, answer)
	}
	owner.session = ""
	status, session, _ := owner.post(initializes)
	if status != http.StatusOK {
		t.Fatalf("a new session of its own process: %d", status)
	}
	thief.session, owner.session = session, session
	if status, _, _ := thief.post(pings); status != http.StatusUnauthorized {
		t.Errorf("a thief in the new session: %d", status)
	}
	if status, _, _ := owner.post(pings); status != http.StatusOK {
		t.Errorf("its own process in the new session: %d", status)
	}
}

// SPEC §11.1, L-3: after a kill a person decides at once, whether the CLI is back or not: its process is known from before.
func TestDecidesBeforeTheCLIIsBack(t *testing.T) {
	b := newBench(t, nil)
	c := b.serve()
	cli := b.way(c)
	_, cli.session, _ = cli.post(initializes)
	client := b.control()
	if err := client.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	path, _ := json.Marshal(b.path("f"))
	if status, _, answer := cli.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%s,"newContent":"x\n"}}}`, path)); status != 200 || strings.Contains(answer, "isError") {
		t.Fatalf("openDiff: %d %s", status, answer)
	}
	b.recorded(1)
	c.end(syscall.SIGKILL)
	b.serve()
	client = b.control()
	diffs, err := client.Diffs(t.Context())
	if err != nil || len(diffs) != 1 {
		t.Fatalf("%+v, %v", diffs, err)
	}
	if err := client.Decide(t.Context(), control.Decision{ID: diffs[0].ID, Accept: true, Seen: control.Seen{Version: diffs[0].Version, Base: diffs[0].Base}}); err != nil {
		t.Errorf("deciding before the CLI is back: %v", err)
	}
}

// control joins the companion's channel.
func (b *bench) control() *control.Client {
	b.t.Helper()
	client, err := control.Find(b.t.Context(), []string{filepath.Join(b.home.Dir, ".local", "state", "pollux", "run")}, b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(client.Close)
	return client
}
