//go:build agents

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// needAgent takes a place among the tests that run agents, until the test ends.
func needAgent(t *testing.T, p peers.Peer) {
	t.Helper()
	peers.Need(t, p)
	needCLI(t)
}

// uses makes an agent's folder, as its first start does.
func (b *bench) uses(folder string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Join(b.home.Dir, folder), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// joins waits until a session of an agent is open that was not.
func (b *bench) joins(label string, start func() *cli.Agent) *cli.Agent {
	b.t.Helper()
	opened := `session="` + label + ` #`
	before := strings.Count(b.log(), opened)
	c := start()
	b.until(label+" is connected", func() bool { return strings.Count(b.log(), opened) > before })
	return c
}

func (b *bench) copilot() *cli.Agent {
	b.t.Helper()
	return b.joins("GitHub Copilot CLI", func() *cli.Agent { return cli.StartCopilot(b.t, b.home, b.dir) })
}

func copilotCreates(path, content string) model.Call {
	return model.Call{Name: "create", Args: map[string]any{"path": path, "file_text": content}}
}

// TestCopilot: the published Copilot CLI finds the companion by its lock, its model is told what is selected, and its proposals are
// shown, accepted and rejected on the page, which takes no edits of them and says why (SPEC GC-1 to GC-5).
func TestCopilot(t *testing.T) {
	needAgent(t, peers.Copilot)
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "crlf.txt": "eins\r\nzwei\r\n"})
	b.uses(".copilot")
	first := b.serve()
	d := b.desk(first)
	d.open("a.txt")
	d.cursor(2, 1, 3)
	c := b.copilot()

	b.step("context", func() {
		var text string
		for range 3 { // it connects anew once, some seconds after its start, and a prompt in between knows no selection
			c.Wait("@a.txt:2", second(60))
			if text = said(c.Ask("tell me what I look at")); strings.Contains(text, "File: a.txt (line 2)") {
				break
			}
		}
		if !strings.Contains(text, "File: a.txt (line 2)") || !strings.Contains(text, "two") {
			t.Errorf("the model is not told of the selection:\n%s", text)
		}
		if mine := strings.TrimSuffix(b.pollux("context", "--agent", "copilot"), "\n"); mine == "" || !strings.Contains(text, mine) {
			t.Errorf("pollux context --agent copilot says:\n%s\nand the model is told:\n%s", mine, text)
		}
		if found := b.pollux("doctor", "copilot"); strings.Contains(found, "FAULT") || !strings.Contains(found, "open_diff is offered") {
			t.Errorf("pollux doctor copilot:\n%s", found)
		}
		b.until("pollux status names it", func() bool { return strings.Contains(b.pollux("status"), "GitHub Copilot CLI #") }) // it comes and goes at first
	})
	b.step("no error on its screen", func() {
		if screen := c.Screen(); strings.Contains(screen, "TypeError") {
			t.Errorf("it shows its user an error:\n%s", screen)
		}
	})
	b.step("mention", func() {
		b.pollux("mention", "crlf.txt:1-2")
		c.Wait("crlf.txt:1-2", second(60))
		b.entered(c.Terminal, c.Model, "crlf.txt")
	})
	b.step("accept", func() {
		c.Ask("write a new file", model.Turn{Calls: []model.Call{copilotCreates(b.path("new.txt"), "proposed\n")}})
		d.proposal("new.txt")
		if owner := d.Text(browser.ID("diff-owner")); !strings.Contains(owner, "GitHub Copilot CLI #") {
			t.Errorf("the title does not say who asks: %q", owner)
		}
		d.WaitText(browser.ID("pane-review"), "takes no edits")
		d.Click(browser.ID("diff-new"))
		d.Type("typed all the same")
		d.Click(browser.ID("accept"))
		b.holds("new.txt", "proposed\n")
		d.noProposal()
	})
	b.step("a file with CRLF", func() {
		c.Ask("change the other file", model.Turn{Calls: []model.Call{{Name: "edit", Args: map[string]any{"path": b.path("crlf.txt"), "old_str": "zwei", "new_str": "2"}}}})
		d.proposal("crlf.txt")
		d.Click(browser.ID("accept"))
		b.holds("crlf.txt", "eins\r\n2\r\n")
		d.noProposal()
	})
	b.step("reject", func() {
		c.Ask("something unwanted", model.Turn{Calls: []model.Call{copilotCreates(b.path("bad.txt"), "bad\n")}})
		d.proposal("bad.txt")
		d.Click(browser.ID("reject"))
		d.noProposal()
		if _, err := os.Stat(b.path("bad.txt")); err == nil {
			t.Error("a rejected change was written")
		}
	})
	b.step("answered in the terminal", func() {
		c.Ask("write it", model.Turn{Calls: []model.Call{copilotCreates(b.path("terminal.txt"), "proposed\n")}})
		d.proposal("terminal.txt")
		c.Answer("1. Yes")
		b.holds("terminal.txt", "proposed\n")
		d.noProposal()
	})
	b.step("two proposals", func() {
		c.Ask("write two", model.Turn{Calls: []model.Call{copilotCreates(b.path("x.txt"), "x\n"), copilotCreates(b.path("y.txt"), "y\n")}})
		for range 2 {
			d.Wait(browser.ID("accept"))
			name := filepath.Base(strings.Fields(d.Text(browser.ID("diff-title")))[0])
			d.Click(browser.ID("accept"))
			b.holds(name, name[:1]+"\n")
		}
		d.noProposal()
	})
	b.step("killed and back", func() {
		b.killed(first, d, "GitHub Copilot CLI #1")
		c.Ask("write again", model.Turn{Calls: []model.Call{copilotCreates(b.path("again.txt"), "proposed\n")}})
		d.proposal("again.txt")
		d.Click(browser.ID("accept"))
		b.holds("again.txt", "proposed\n")
		d.noProposal()
	})
	b.step("the agent is killed", func() {
		c.Ask("one more", model.Turn{Calls: []model.Call{copilotCreates(b.path("orphan.txt"), "proposed\n")}})
		d.proposal("orphan.txt")
		b.kills(c)
		d.noProposal()
	})
}

func TestCopilotStories(t *testing.T) {
	needAgent(t, peers.Copilot)
	b := newBench(t, storyFiles())
	b.uses(".copilot")
	b.tellsTheRest(habit{
		"GitHub Copilot CLI", "b.txt",
		func() guest { return ofAgent(b.copilot()) },
		func(path, text string) []model.Turn {
			return []model.Turn{{Calls: []model.Call{copilotCreates(path, text)}}}
		},
		func(path, before, after string) []model.Turn {
			return []model.Turn{{Calls: []model.Call{{Name: "edit", Args: map[string]any{"path": path, "old_str": before, "new_str": after}}}}}
		},
	})
}

// TestCopilotElsewhere: the end of the companion decides nothing, and Copilot CLI asks in its terminal (SPEC GC-3).
func TestCopilotElsewhere(t *testing.T) {
	needAgent(t, peers.Copilot)
	b := newScene(t)
	b.uses(".copilot")
	first := b.serve()
	d := b.desk(first)
	c := b.copilot()
	b.step("companion's end", func() {
		c.Ask("write it", model.Turn{Calls: []model.Call{copilotCreates(b.path("left.txt"), "proposed\n")}})
		d.proposal("left.txt")
		d.Expect("WebSocket connection")
		first.end(syscall.SIGTERM)
		c.Wait("1. Yes", second(60))
		if _, err := os.Stat(b.path("left.txt")); err == nil {
			t.Error("the companion's end was taken for an acceptance")
		}
		c.Answer("1. Yes")
		b.holds("left.txt", "proposed\n")
	})
}

// killed kills a companion, and starts one that its page and an agent come back to by themselves.
func (b *bench) killed(c *companion, d *desk, label string) {
	b.t.Helper()
	d.Expect("WebSocket")
	d.Expect("net::ERR_")
	c.end(syscall.SIGKILL)
	b.serve()
	d.online()
	b.until(label+" is back", func() bool { return strings.Contains(b.pollux("status"), label) })
}

// isTold asks an agent until its model is told some words.
func (b *bench) isTold(c *cli.Agent, words string) {
	b.t.Helper()
	n := 0
	b.until("the model is told "+words, func() bool {
		n++ // no prompt is like another: what stands on the screen already hides that a new one was swallowed
		return strings.Contains(said(c.Ask(fmt.Sprintf("tell me what I look at, the %d. time", n))), words)
	})
}

// TestOpenCode: the published opencode finds the companion by Claude Code's lock, and its model is told what is selected, with the lines
// that a person counts (SPEC OC-1 to OC-4).
func TestOpenCode(t *testing.T) {
	needAgent(t, peers.OpenCode)
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\nthree\n"})
	b.uses(".claude")
	first := b.serve()
	d := b.desk(first)
	d.open("a.txt")
	d.cursor(2, 1, 3)
	c := b.joins("opencode", func() *cli.Agent { return cli.StartOpenCode(b.t, b.home, b.dir, nil) })
	b.step("context", func() {
		text := said(c.Ask("tell me what I look at"))
		if want := `The user selected #2 from "` + b.path("a.txt") + "\". ```two```"; !strings.Contains(text, want) {
			t.Errorf("the model is not told of the selection:\n%s", text)
		}
		if found := b.pollux("doctor", "opencode"); strings.Contains(found, "FAULT") {
			t.Errorf("pollux doctor opencode:\n%s", found)
		}
		if state := b.pollux("status"); !strings.Contains(state, "opencode #") {
			t.Errorf("pollux status:\n%s", state)
		}
	})
	b.step("mention", func() {
		if told := b.pollux("mention", "a.txt:2-3"); !strings.Contains(told, "by its protocol") {
			t.Errorf("pollux mention says %q", told)
		}
		c.Wait("a.txt#2-3", second(60))
		b.entered(c.Terminal, c.Model, "a.txt")
	})
	b.step("two sessions", func() {
		two := b.joins("opencode", func() *cli.Agent { return cli.StartOpenCode(b.t, b.home, b.dir, nil) })
		d.cursor(1, 1, 3)
		b.isTold(c, "```one```")
		b.isTold(two, "```one```")
		if state := b.pollux("status"); strings.Count(state, "opencode #") != 2 {
			t.Errorf("pollux status:\n%s", state)
		}
	})
	b.step("killed and back", func() {
		b.killed(first, d, "opencode #")
		d.cursor(3, 1, 5)
		b.isTold(c, "```three```")
	})
}

// TestOpenCodeRun: pollux run connects an opencode on a machine that has no folder of Claude Code's, also in a terminal with a port that
// would keep it out (SPEC OC-2).
func TestOpenCodeRun(t *testing.T) {
	needAgent(t, peers.OpenCode)
	b := newBench(t, map[string]string{"a.txt": "one\n"})
	b.joins("opencode", func() *cli.Agent {
		command := append([]string{shared.pollux, "run", "--no-open", "--"}, peers.Command(t, peers.OpenCode)...)
		return cli.StartOpenCode(b.t, b.home, b.dir, command, "CLAUDE_CODE_SSE_PORT=1", "OPENCODE_EDITOR_SSE_PORT=1")
	})
}

// TestCodex: the published Codex asks on its socket, and its model is told what is selected (SPEC CX-1, CX-2).
func TestCodex(t *testing.T) {
	needAgent(t, peers.Codex)
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\nthree\n"})
	b.uses(".codex")
	first := b.serve()
	d := b.desk(first)
	d.open("a.txt")
	d.cursor(2, 1, 3)
	c := cli.StartCodex(t, b.home, b.dir, false)
	b.step("context", func() {
		c.IDE()
		text := said(c.Ask("tell me what I look at"))
		if !strings.Contains(text, "## Active file: a.txt") || !strings.Contains(text, "## Active selection of the file:\ntwo") {
			t.Errorf("the model is not told of the selection:\n%s", text)
		}
		if mine := strings.TrimSuffix(b.pollux("context", "--agent", "codex"), "\n"); mine == "" || !strings.Contains(text, mine) {
			t.Errorf("pollux context --agent codex says:\n%s\nand the model is told:\n%s", mine, text)
		}
		if found := b.pollux("doctor", "codex"); strings.Contains(found, "FAULT") || !strings.Contains(found, "answered by pollux") {
			t.Errorf("pollux doctor codex:\n%s", found)
		}
		if state := b.pollux("status"); !strings.Contains(state, "connected: Codex") {
			t.Errorf("pollux status:\n%s", state)
		}
	})
	b.step("mention", func() {
		b.pollux("mention", "a.txt:2", "--words", "why two?")
		c.Wait("@a.txt line 2 why two?", second(60))
	})
	b.step("two sessions", func() {
		b.entered(c.Terminal, c.Model, "why two?")
		two := cli.StartCodex(t, b.home, b.dir, false)
		two.IDE()
		d.cursor(1, 1, 3)
		b.isTold(c, "selection of the file:\none")
		b.isTold(two, "selection of the file:\none")
	})
	b.step("killed and back", func() {
		b.killed(first, d, "")
		d.cursor(3, 1, 5)
		b.isTold(c, "selection of the file:\nthree") // it asks with its prompts alone
	})
}
