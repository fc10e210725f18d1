package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// TestLife: companions and editors end and come again (SPEC L-1 to L-3, A-1).
func TestLife(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){
		"companion dies": companionDies, "editor dies": editorDies, "editor again": editorAgain, "quit": quit, "restart": restart,
	})
}

// pending waits until the companion has so many open diffs.
func (b *bench) pending(n int) {
	b.Helper()
	client := b.control()
	b.until(itoa(n)+" open diffs", func() bool {
		all, err := client.Diffs(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return len(all) == n
	})
}

// L-3: the companion is killed with an edited diff on show; it comes back on the same port, and takes the decision.
func companionDies(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.offer(a, "a", "new\n")
	b.types(1, "edited")
	b.until("the journal", func() bool { return b.journal("new") })
	b.step("the companion is killed")
	port, old := b.port(), b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	if got := b.port(); got != port {
		t.Errorf("port %d became %d", port, got)
	}
	b.pending(1)
	b.shows("a", "newedited\n")
	b.step("the user accepts")
	b.accept()
	b.calm("a")
	b.until("the outcome", func() bool { return b.history("newedited") })
	b.sees(b.connect(), "a 1:1") // it serves others too
}

// L-2: the editor is killed; the companion and its file are gone within a second.
func editorDies(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.offer(a, "a", "new\n")
	companion := b.companion()
	b.step("the editor is killed")
	b.kill(b.pid(), syscall.SIGKILL)
	watch := pace.Start(t)
	b.until("the end of the companion", func() bool { return len(b.files()) == 0 && !alive(companion) })
	if took := watch.Took(); took > pace.Slack*time.Second {
		t.Errorf("took %v", took)
	}
	b.rejected(a, "a")
}

// an editor that was killed and is opened again serves the same CLIs.
func editorAgain(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	port := b.port()
	b.kill(b.pid(), syscall.SIGKILL)
	b.until("the end", func() bool { return len(b.files()) == 0 })
	_ = os.Remove(filepath.Join(b.root, "n")) // Neovim does not listen where it did
	b.step("the editor is opened again")
	b.open("a")
	if b.port() != port {
		t.Errorf("port %d became %d", port, b.port())
	}
	b.sees(b.connect(), "a 1:1")
}

// L-1, F-3: leaving the editor rejects what is open, whatever else it writes;
// a pollux diff hears that nobody decided (SPEC §11.5: 3).
func quit(t *testing.T, f flavour) {
	for i, leave := range f.user(nil).leaving() {
		b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "b")
		b.step("the user leaves by %s", leave.name)
		b.types(1, "mine")
		b.offer(a, "a", "new\n")
		b.types(1, "edited")
		asked := exec.Command(binary(), "diff", "a", "--from", os.DevNull)
		asked.Env, asked.Dir = b.env, b.project
		var said strings.Builder
		asked.Stderr = &said
		if err := asked.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = asked.Process.Kill() }()
		b.pending(2)
		b.leaving()[i].do()
		if err := asked.Wait(); asked.ProcessState.ExitCode() != 3 || !strings.Contains(said.String(), "has stopped before it answered") {
			b.Errorf("pollux diff: %v: %s", err, &said)
		}
		b.rejected(a, "a")
		b.until("the end", func() bool { return len(b.files()) == 0 })
		if code := b.tm.Exit(patience); code != 0 {
			b.Errorf("exit code %d", code)
		}
		if data, err := os.ReadFile(b.path("b")); string(data) != leave.leaves {
			b.Errorf("b holds %q, %v", data, err)
		}
	}
}

// Another companion by the user's word: what was open is rejected.
func restart(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.offer(a, "a", "new\n")
	old := b.companion()
	b.command("pollux.restart")
	b.rejected(a, "a")
	b.until("the old one's end", func() bool { return !alive(old) })
	b.is(f.running, f.yes)
	b.calm("a")
	b.sees(b.connect(), "a 1:1")
}
