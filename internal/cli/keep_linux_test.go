package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/pace"
)

// keeping returns the keeper processes of this world, also before they serve.
func (w *world) keeping() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, _ := os.ReadFile(name)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "environ"))
		var pid int
		if _, err := fmt.Sscanf(name, "/proc/%d/cmdline", &pid); err == nil && strings.HasSuffix(string(line), "\x00keep\x00") && strings.Contains(string(env), "XDG_STATE_HOME="+w.state+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// SPEC L-3, L-4: a process is killed while a door passes from an editor to its keeper, or from the keeper to the next
// editor. The next editor has the proposal with the user's edits, and the CLI hears one outcome.
func TestKilledHandOversL4(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t)
	e := w.newIDE("vim")
	port := portOf(e.file)
	cli := agent.Start(t, e.file)
	path := filepath.Join(w.project, "a")
	cli.OpenDiff(path, "A\n")
	id := e.shows(path, "A\n")
	e.peer.Notify("pollux/didChangeDiff", map[string]any{"diffId": id, "version": 1, "content": "edited\n"})
	kill := func(what string) {
		for _, pid := range w.keeping() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		eventually(t, "the end of the keeper, "+what, func() bool { return len(w.keeping()) == 0 })
	}
	for _, after := range []time.Duration{0, 8 * time.Millisecond, 30 * time.Millisecond, 90 * time.Millisecond, 250 * time.Millisecond} {
		for _, who := range []string{"the keeper", "the next", "both"} {
			what := fmt.Sprintf("%s, %v on", who, after)
			e.leave(nil)
			e.gone(pace.Start(t))
			if who == "the keeper" {
				time.Sleep(after) // the moment varies on purpose
				kill(what)
			} else {
				w.keeper(1)
				next := w.command("lsp")
				in, err := next.StdinPipe()
				if err == nil {
					err = next.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":%d,"workspaceFolders":[{"uri":"file://%s"}],`+
					`"initializationOptions":{"pollux":{"version":2,"context":true,"openDiff":true,"ide":{"name":"vim","displayName":"vim"}}}}}`+"\n", e.pid, w.project)
				time.Sleep(after)
				_ = next.Process.Kill()
				if who == "both" {
					kill(what)
				}
				_ = next.Wait()
			}
			e = w.newIDE("vim")
			if got := portOf(e.file); got != port {
				t.Fatalf("%s: the next editor is at port %d, want %d", what, got, port)
			}
			id = e.shows(path, "edited\n")
		}
	}
	if err := e.peer.Call(t.Context(), "pollux/resolveDiff", map[string]any{"diffId": id, "version": 1, "baseVersion": 0, "outcome": "accepted"}, nil); err != nil {
		t.Error(err)
	}
	if o := cli.Outcome(); o.Method != "ide/diffAccepted" || o.Content != "edited\n" {
		t.Errorf("the CLI hears %+v", o)
	}
	cli.NotOpen(path)
}
