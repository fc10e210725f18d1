package editors

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// micro is micro with the plugin as pollux install writes it. It can be asked nothing: its tests read the screen.
func micro(t *testing.T) flavour {
	t.Helper()
	program := peers.Need(t, peers.Micro)
	return flavour{
		name: "micro", display: "micro",
		start: func(t *testing.T, b *bench, files []string) []string {
			install := exec.CommandContext(t.Context(), binary(), "install", "micro")
			install.Env = b.env
			if out, err := install.CombinedOutput(); err != nil || !strings.Contains(string(out), "> term gemini") {
				t.Fatalf("%v: %s", err, out)
			}
			return append([]string{program}, files...)
		},
	}
}

// on waits for a text on the screen, off until it is gone.
func (b *bench) on(text string) { b.Helper(); b.tm.Wait(text, patience) }
func (b *bench) off(text string) {
	b.Helper()
	b.until(text+" to go", func() bool { return !strings.Contains(b.tm.Screen(), text) })
}

// microCommand types a command into micro's bar.
func (b *bench) microCommand(command string) {
	b.Helper()
	b.keys("C-e")
	b.on("> ")
	b.text(command)
	b.keys("Enter")
}

// microShows proposes a text, and shows it if it waits since keys have just been typed.
func (b *bench) microShows(a *agent.Agent, file, text string) {
	b.Helper()
	a.OpenDiff(b.path(file), text)
	var screen string
	b.until("the proposal", func() bool {
		screen = b.tm.Screen()
		return strings.Contains(screen, file+" (proposal)") || strings.Contains(screen, "> pollux review")
	})
	if !strings.Contains(screen, "(proposal)") {
		b.microCommand("pollux review")
	}
	b.on("save accepts, quit rejects")
}

// TestMicro plays what a user of micro does, from the cursor's first move until pollux is killed.
func TestMicro(t *testing.T) {
	t.Parallel()
	b, a := user(t, micro(t), map[string]string{"a.go": sample, "b.txt": "b\n"}, "a.go")
	b.step("context") // C-1 to C-4
	b.sees(a, "a.go 1:1")
	b.keys("Down", "Down", "End")
	b.sees(a, "a.go 3:18")
	b.keys("S-Left")
	b.sees(a, `a.go 3:17 "x"`)
	b.keys("Right")
	b.microCommand("vsplit b.txt")
	b.sees(a, "b.txt 1:1")
	b.keys("C-q")
	b.sees(a, "a.go 3:18")

	for _, text := range []string{"one\r\ntwo\r\n", "no end", "\ufeffmarked\n", "tab\te\u0301 😀\n", "\n\n", ""} { // F-3, F-6
		b.step("%q is accepted as it came", text)
		b.microShows(a, "a.go", text)
		b.sees(a, "none") // C-6
		b.keys("C-s")
		b.accepted(a, "a.go", text)
		b.off("(proposal)")
	}

	b.step("what micro cannot keep is not shown")
	if why := a.Refused(b.path("a.go"), "mixed\r\nlines\n"); !strings.Contains(why, "page") {
		b.Error(why)
	}

	b.step("an edit counts") // F-5
	b.microShows(a, "a.go", "edited\n")
	b.text("By hand ")
	b.until("the edit in the journal", func() bool { return b.journal("By hand") })
	b.step("pollux is killed, and comes back with the text")
	old := b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool {
		b.keys("Right") // a key starts it
		return len(b.files()) == 1 && b.stamp() != old && serves(b.file())
	})
	a.Quiet()
	b.keys("C-s")
	b.until("the decision in the history", func() bool { return b.history("By hand edited") })
	b.write("a.go", "By hand edited\n") // as the agent does
	b.on("1 By hand edited")
	b.off("(proposal)")
	a = b.connect()

	b.step("quitting rejects") // F-3
	b.microShows(a, "b.txt", "other\n")
	b.keys("C-q")
	b.rejected(a, "b.txt")
	b.off("(proposal)")

	b.step("the agent takes one back, and a second waits") // F-4
	b.microShows(a, "b.txt", "taken back\n")
	a.OpenDiff(b.path("a.go"), "second\n")
	b.on("a proposal for a.go waits")
	b.keys("End")
	b.text(", edited")
	b.on("taken back, edited")
	if got := a.CloseDiff(b.path("b.txt")); !strings.Contains(got, `"content":"taken back, edited\n"`) {
		b.Errorf("closeDiff answers %s", got)
	}
	b.off("b.txt (proposal)")
	b.microCommand("pollux review")
	b.on("a.go (proposal)")
	b.microCommand("pollux accept")
	b.accepted(a, "a.go", "second\n")

	b.step("what the agent wrote is read")
	b.write("a.go", "second\n")
	b.on("1 second")

	b.step("nothing is told while paused")
	b.microCommand("pollux pause")
	b.on("paused: nothing is shared")
	b.sees(a, "none")
	b.microCommand("pollux pause") // again: one key is enough
	b.on("agents see again")
	b.keys("C-Home")
	b.sees(a, "a.go 1:1")
	a.Quiet()
}

// What was decided can be looked at and taken back, and rules decide (SPEC F-11, F-12).
func TestMicroPast(t *testing.T) {
	t.Parallel()
	b, a := user(t, micro(t), map[string]string{"a.txt": "a\n", "b.txt": "b\n"}, "a.txt")
	b.microShows(a, "b.txt", "b\nmore\n")
	b.keys("C-s")
	b.accepted(a, "b.txt", "b\nmore\n")
	b.write("b.txt", "b\nmore\n")
	b.microCommand("pollux history")
	b.on("accepted")
	b.microCommand("pollux history 1")
	b.on("b.txt (accepted)")
	b.on("more")
	b.microCommand("pollux undo 1")
	b.on("has its earlier text again")
	b.until("the earlier text", func() bool { data, _ := os.ReadFile(b.path("b.txt")); return string(data) == "b\n" })
	b.microCommand("pollux rules")
	b.on("there is no rule")
	b.microCommand("pollux policy accept b.txt")
	b.on("accept: ")
	b.microCommand("pollux rules")
	b.on("rules, the newest first: accept /")
	a.OpenDiff(b.path("b.txt"), "by a rule\n")
	b.accepted(a, "b.txt", "by a rule\n")
}

// A micro without a pollux says what to do, and goes on.
func TestMicroAlone(t *testing.T) {
	t.Parallel()
	f := micro(t)
	b := newBench(t, f, map[string]string{"a.txt": "text\n"})
	args := f.start(t, b, []string{"a.txt"})
	b.write("../c/micro/plug/pollux/installed.lua", "installed = '/nowhere/pollux'\n")
	b.tm = terminal.Start(b, terminal.Options{Dir: b.project, Env: b.env, Args: args})
	b.on("pollux does not run")
	b.microCommand("pollux status")
	b.on("pollux is not running")
	b.text("more ")
	b.on("1 more text")
}
