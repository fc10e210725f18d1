package editors

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/peers"
)

// kakoune is Kakoune with the plugin as pollux install writes it, and the line that it names. Its tests read the screen.
func kakoune(t *testing.T) flavour {
	t.Helper()
	program := peers.Need(t, peers.Kakoune)
	return flavour{
		name: "kakoune", display: "Kakoune",
		start: func(t *testing.T, b *bench, files []string) []string {
			install := exec.CommandContext(t.Context(), binary(), "install", "kakoune")
			install.Env = b.env
			out, err := install.CombinedOutput()
			_, line, said := strings.Cut(string(out), "add this line to your kakrc: ")
			line, _, _ = strings.Cut(line, ";")
			if err != nil || !said {
				t.Fatalf("%v: %s", err, out)
			}
			b.write("../c/kak/kakrc", line+"\nset-option global startup_info_version 99999999\n")
			return append([]string{program}, files...)
		},
	}
}

// kakouneShows proposes a text and waits for it on the screen.
func (b *bench) kakouneShows(a *agent.Agent, file, text string) {
	b.Helper()
	a.OpenDiff(b.path(file), text)
	b.on(file + " (proposal) ") // in the mode line
}

// normal leads back to the normal mode. A key that comes at once after Escape would be another one.
func (b *bench) normal() { b.Helper(); b.on(" insert "); b.keys("Escape"); b.off(" insert ") }

// TestKakoune plays what a user of Kakoune does, from the cursor's first move until the end.
func TestKakoune(t *testing.T) {
	t.Parallel()
	b, a := user(t, kakoune(t), map[string]string{"a.go": sample, "b.txt": "b\n"}, "a.go")
	b.step("context") // C-1 to C-4
	b.sees(a, "a.go 1:1")
	b.keys("j", "j", "g", "l")
	b.sees(a, "a.go 3:17")
	b.keys("h", "L")
	b.sees(a, `a.go 3:17 " x"`)
	b.keys("h", "l")
	b.ex("edit b.txt")
	b.sees(a, "b.txt 1:1")
	b.ex("edit a.go")
	b.sees(a, "a.go 3:17")
	b.on("Gemini 1 a.go")

	for _, text := range []string{"one\r\ntwo\n", "no end", "\ufeffmarked\n", "tab\te\u0301 😀 'it''s' %{\n", "\n\n", "", "mixed\r\nlines\n"} { // F-3, F-6
		b.step("%q is accepted as it came", text)
		b.kakouneShows(a, "a.go", text)
		b.sees(a, "none") // C-6
		b.ex("w")
		b.accepted(a, "a.go", text)
		b.off("(proposal) ")
	}

	b.step("an edit counts, and the changes can be seen") // F-5
	b.kakouneShows(a, "b.txt", "b\nnew\n")
	b.on("+new")
	b.text("geoby hand")
	b.normal()
	b.until("the edit in the journal", func() bool { return b.journal("by hand") })
	b.on("+by hand")
	b.ex("pollux-changes")
	b.on("--- before")
	b.keys("g", "a")
	b.on("b.txt (proposal) ")
	b.ex("w")
	b.accepted(a, "b.txt", "b\nnew\nby hand\n")
	b.off("(proposal) ")
	b.step("what the agent then writes is read without a question")
	b.ex("edit b.txt")
	b.write("b.txt", "b\nnew\nby hand\n")
	b.on("by hand")

	b.step("quitting rejects") // F-3
	b.kakouneShows(a, "b.txt", "other\n")
	b.ex("q")
	b.rejected(a, "b.txt")
	b.off("(proposal) ")

	b.step("the agent takes one back, with what was just typed, and a second waits") // F-4
	b.kakouneShows(a, "b.txt", "taken back\n")
	a.OpenDiff(b.path("a.go"), "second\n")
	b.text("A, edited")
	b.normal()
	b.on("taken back, edited")
	if got := a.CloseDiff(b.path("b.txt")); !strings.Contains(got, `"content":"taken back, edited\n"`) {
		b.Errorf("closeDiff answers %s", got)
	}
	b.on("a.go (proposal) ")
	b.ex("pollux-accept")
	b.accepted(a, "a.go", "second\n")

	b.step("nothing is told while paused")
	b.ex("pollux-pause")
	b.on("paused: nothing is shared")
	b.sees(a, "none")
	b.ex("pollux-pause") // again: one key is enough
	b.on("agents see again")
	a.Quiet()

	b.step("the user leaves")
	companion := b.server()
	b.ex("kill!")
	b.tm.Exit(patience)
	b.until("pollux's end", func() bool { return !alive(companion) && len(b.files()) == 0 })
	if left, _ := os.ReadDir(b.root + "/s/pollux/kakoune"); len(left) > 0 {
		b.Errorf("%v is left", left)
	}
}

// server is the PID of the pollux that serves Kakoune, which is no child of it.
func (b *bench) server() int {
	b.Helper()
	pid := 0
	b.until("Kakoune's pollux", func() bool {
		out, _ := exec.Command("pgrep", "-f", "kakoune serve [^ ]+ "+itoa(b.pid())+"( |$)").Output()
		pid, _ = strconv.Atoi(strings.TrimSpace(string(out)))
		return pid != 0
	})
	return pid
}

// A killed pollux comes back with what was on show, and hears of what was decided meanwhile (SPEC L-3, F-12).
func TestKakouneCompanionDies(t *testing.T) {
	t.Parallel()
	b, a := user(t, kakoune(t), map[string]string{"a.txt": "a\n"}, "a.txt")
	b.kakouneShows(a, "a.txt", "new\n")
	b.until("the journal", func() bool { return b.journal("new") })
	old := b.stamp()
	b.kill(b.server(), syscall.SIGKILL)
	b.text("A edited")
	b.normal()
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	b.until("the edit in the journal", func() bool { return b.journal("new edited") })
	b.on("Gemini 1 ±1")
	b.ex("w")
	b.until("the decision in the history", func() bool { return b.history("new edited") })
	b.off("(proposal) ")

	b.step("a rejection that nobody hears")
	a = b.connect()
	b.kakouneShows(a, "a.txt", "third\n")
	b.text("A unheard")
	b.normal()
	b.until("the journal", func() bool { return b.journal("third unheard") })
	old = b.stamp()
	b.kill(b.server(), syscall.SIGKILL)
	b.ex("q")
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	b.until("the words in the history", func() bool { return b.history("third unheard") })
	b.pending(0)
	b.off("(proposal) ")
}

// The file changes while its proposal waits (SPEC F-13); what was decided can be looked at and taken back; rules decide (F-11, F-12).
func TestKakouneFollows(t *testing.T) {
	t.Parallel()
	b, a := user(t, kakoune(t), map[string]string{"a.txt": "1\n2\n3\n4\n5\n", "b.txt": "b\n"}, "a.txt")
	b.step("what others write beside the proposal is merged, and the view stays")
	b.kakouneShows(a, "a.txt", "1\n2\n3\n4\n5 new\n")
	b.text("geoby hand")
	b.normal()
	b.until("the edit in the journal", func() bool { return b.journal("by hand") })
	b.write("a.txt", "1 theirs\n2\n3\n4\n5\n")
	b.on("1 theirs")
	b.on("5 new")
	b.ex("w")
	merged := "1 theirs\n2\n3\n4\n5 new\nby hand\n"
	b.accepted(a, "a.txt", merged)
	b.off("(proposal) ")
	b.write("a.txt", merged)
	b.on("by hand")

	b.step("what the agent writes by itself is shown without a question")
	b.write("a.txt", merged+"by itself\n")
	b.on("by itself")
	b.off("reload")

	b.step("a conflict waits for the user")
	b.kakouneShows(a, "a.txt", "mine\n")
	b.write("a.txt", "other\n")
	b.on("the file's lines")
	b.ex("w")
	b.on("keep the proposal or take")
	b.ex("pollux-take")
	b.on("the file's lines stand")
	b.ex("q")
	b.rejected(a, "a.txt")
	b.off("(proposal) ")

	b.step("past proposals, and undo")
	b.kakouneShows(a, "b.txt", "b\nmore\n")
	b.ex("w")
	b.accepted(a, "b.txt", "b\nmore\n")
	b.write("b.txt", "b\nmore\n")
	b.ex("pollux-history")
	b.on("rejected")
	b.keys("g", "g", "Enter")
	b.on("--- before")
	b.on("+more")
	b.ex("pollux-undo 1")
	b.on("has its earlier text again")
	b.until("the earlier text", func() bool { data, _ := os.ReadFile(b.path("b.txt")); return string(data) == "b\n" })

	b.step("rules")
	b.ex("pollux-policy accept b.txt")
	b.on("accept: ")
	b.ex("pollux-rules")
	b.on("rules, the newest first")
	a.OpenDiff(b.path("b.txt"), "by a rule\n")
	b.accepted(a, "b.txt", "by a rule\n")
	a.Quiet()
}
