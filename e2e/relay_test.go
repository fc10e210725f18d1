package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// eventually polls until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(second(60)); !cond(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never comes to: " + what)
		}
	}
}

// onlyDiff waits until the page has one diff and returns its id.
func onlyDiff(t *testing.T, page *webtest.Page) string {
	t.Helper()
	var hello struct{ Diffs []struct{ ID string } }
	eventually(t, "one diff on the page", func() bool {
		page.Call("hello", map[string]any{"clientId": "relay"}, &hello)
		return len(hello.Diffs) == 1
	})
	return hello.Diffs[0].ID
}

// SPEC K-4: a CLI that finds no editor starts the relay and is connected. An editor
// that comes is found; one that is killed with an open proposal is replaced by
// the next, on another port with another token, where the proposal stands again and is accepted. The CLI never notices.
func TestRelay(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	b.pollux("setup", "--relay")
	s := b.gemini("")
	connected(s)

	c := b.serve()
	page := webtest.Open(t, c.Page, "relay")
	status := ""
	t.Cleanup(func() { t.Logf("the last status: %s", status) })
	eventually(t, "the relay at the editor", func() bool {
		var all []struct{ Port, Sessions int }
		status = b.pollux("status", "--json")
		_ = json.Unmarshal([]byte(status), &all)
		// The relay's own file may stand first: whose a CLI below this test's own parents would take.
		return slices.ContainsFunc(all, func(one struct{ Port, Sessions int }) bool { return one.Port == c.Port && one.Sessions == 1 })
	})
	from := len(s.Model.Requests())
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	s.Question()
	onlyDiff(t, page)

	c.end(syscall.SIGKILL)
	if err := os.RemoveAll(filepath.Join(b.home.Dir, ".local", "state", "pollux", "resume")); err != nil {
		t.Fatal(err)
	}
	again := b.serve()
	if again.Resumed {
		t.Error("the second editor takes over from the first, which this test is not about")
	}
	page = webtest.Open(t, again.Page, "relay")
	page.Call("diff/accept", map[string]any{"id": onlyDiff(t, page)}, nil)
	b.holds("a.txt", "new\n")
	result(t, s, from)
	connected(s)
}

// diagnose runs pollux doctor as a CLI of the bench would be started.
func (b *bench) diagnose() (report struct {
	Connects bool
	Says     string
	Findings []struct{ ID, Level, What string }
}, code int,
) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), second(60))
	defer cancel()
	cmd := exec.CommandContext(ctx, shared.pollux, "doctor", "--json")
	cmd.Dir, cmd.Env, cmd.Stderr = b.dir, b.home.Env("SSH_CONNECTION=127.0.0.1 1 127.0.0.1 2"), os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(out, &report); err != nil {
		b.t.Fatalf("%s: %v", out, err)
	}
	return report, cmd.ProcessState.ExitCode()
}

// What doctor says and what the CLI then does are the same, the sentence included.
func TestDoctorAgrees(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	c := b.serve()
	if r, code := b.diagnose(); r.Connects || code != 1 || r.Says != "Connected to Pollux" {
		t.Errorf("nobody would show a diff: %+v, exit code %d", r, code)
	}
	webtest.Open(t, c.Page, "doctor")
	if r, code := b.diagnose(); !r.Connects || code != 0 || r.Says != "Connected to Pollux" {
		t.Errorf("%+v, exit code %d", r, code)
	}
	connected(b.gemini(""))

	c.end(syscall.SIGTERM)
	left := fmt.Sprintf(`{"port":%d,"workspacePath":%q,"authToken":"t","ideInfo":{"name":"x","displayName":"Left Behind"}}`, c.Port, b.dir)
	if err := os.WriteFile(filepath.Join(filepath.Dir(c.DiscoveryFile), fmt.Sprintf("gemini-ide-server-%d-%d.json", os.Getpid(), c.Port)), []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	r, code := b.diagnose()
	port := ""
	for _, f := range r.Findings {
		if f.ID == "port" && f.Level == "fault" {
			port = f.What
		}
	}
	if r.Connects || code != 1 || !strings.Contains(port, "nobody listens") || !strings.HasPrefix(r.Says, "Failed to connect to IDE companion extension in Left Behind.") {
		t.Errorf("%+v, exit code %d", r, code)
	}
	b.gemini("").Status("Failed to connect to IDE companion")
}
