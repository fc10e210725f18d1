package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/pace"
)

// wakes counts how often the threads of a process have gone to sleep and been woken.
func wakes(t *testing.T, pid int) int {
	t.Helper()
	sum := 0
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.Lines(string(data)) {
			if n, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				count, err := strconv.Atoi(strings.TrimSpace(n))
				if err != nil {
					t.Fatal(err)
				}
				sum += count
			}
		}
	}
	if sum == 0 {
		t.Fatalf("process %d has no threads", pid)
	}
	return sum
}

// idle fails unless a process comes to rest: some seconds with hardly a wake-up, within patience.
func idle(t *testing.T, pid int) {
	t.Helper()
	const span, most = 4 * time.Second, 6
	fewest := 1 << 30
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := wakes(t, pid)
		<-time.After(span)
		n := wakes(t, pid) - before
		if fewest = min(fewest, n); fewest <= most {
			t.Logf("%d wake-ups in %v", n, span)
			return
		}
	}
	t.Errorf("an idle pollux wakes %d times in %v, at the best; at most %d are allowed", fewest, span, most)
}

// edit starts a pollux lsp for an editor process of the test, and leaves its pipe open.
func (w *world) edit(editor int, root string) *exec.Cmd {
	w.t.Helper()
	cmd := w.command("lsp")
	in, out := child.Start(w.t, cmd)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for _, m := range []string{
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":%d,"rootUri":"file://%s","capabilities":{},"initializationOptions":{}}}`, editor, root),
		`{"jsonrpc":"2.0","method":"initialized","params":{}}`,
	} {
		fmt.Fprintf(in, "Content-Length: %d\r\n\r\n%s", len(m), m)
	}
	return cmd
}

// An idle companion sleeps.
func TestIdle(t *testing.T) {
	pace.NotRaced(t, "it measures, and waits for minutes")
	t.Parallel() // it mostly waits
	w := newWorld(t)
	t.Run("serve", func(t *testing.T) {
		l := w.serve()
		idle(t, l.PID)
		s := newCLI(t, l)
		s.stream()
		idle(t, l.PID) // its stream has a keep-alive every 30 s
	})
	t.Run("serve with parent", func(t *testing.T) { idle(t, w.serve("--with-parent").PID) })
	t.Run("lsp", func(t *testing.T) {
		editor := exec.Command("sleep", "600")
		if err := editor.Start(); err != nil {
			t.Fatal(err)
		}
		before := len(w.files())
		cmd := w.edit(editor.Process.Pid, w.project)
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		eventually(t, "its discovery file", func() bool { return len(w.files()) > before })
		idle(t, cmd.Process.Pid)
		l := &live{t: t}
		l.PID = editor.Process.Pid
		for _, file := range w.files() {
			if _, err := fmt.Sscanf(filepath.Base(file), fmt.Sprintf("gemini-ide-server-%d-%%d.json", l.PID), &l.Port); err == nil {
				l.DiscoveryFile = file
			}
		}
		newCLI(t, l).stream()
		idle(t, cmd.Process.Pid) // with a session: no search
		watch := pace.Start(t)
		_ = editor.Process.Kill() // L-2: the pipe stays open, as when a child has inherited it
		_ = editor.Wait()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("pollux outlives its editor")
		}
		if took := watch.Took(); took > pace.Slack*time.Second {
			t.Errorf("it took %v to notice", took)
		}
	})
}
