package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// needClaude takes a place among the tests that run agents, until the test ends.
func needClaude(t *testing.T) {
	t.Helper()
	peers.Need(t, peers.Claude)
	needCLI(t)
}

// claude starts a Claude Code that connects by itself, as with autoConnectIde in its settings.
func (b *bench) claude(env ...string) *cli.Agent {
	b.t.Helper()
	c := cli.StartClaude(b.t, b.home, b.dir, append([]string{"CLAUDE_CODE_AUTO_CONNECT_IDE=true"}, env...)...)
	b.until("Claude Code is connected", func() bool {
		return strings.Contains(b.log(), `msg="session opened"`) && strings.Contains(b.log(), `session="Claude Code #`)
	})
	return c
}

// usesClaude makes Claude Code's folder, as its first start does.
func (b *bench) usesClaude() {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Join(b.home.Dir, ".claude"), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// Calls of Claude Code's own tools.
func claudeWrites(path, content string) model.Turn {
	return model.Turn{Calls: []model.Call{{Name: "Write", Args: map[string]any{"file_path": path, "content": content}}}}
}

func claudeEdits(path, before, after string) model.Turn {
	return model.Turn{Calls: []model.Call{{Name: "Edit", Args: map[string]any{"file_path": path, "old_string": before, "new_string": after}}}}
}

func claudeReads(path string) model.Turn {
	return model.Turn{Calls: []model.Call{{Name: "Read", Args: map[string]any{"file_path": path}}}}
}

// TestClaude: the published Claude Code finds the companion by its lock, its model is told what the user looks at, and its
// proposals are shown, edited, accepted and rejected on the page (SPEC CC-1 to CC-9).
func TestClaude(t *testing.T) {
	needClaude(t)
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "crlf.txt": "eins\r\nzwei\r\n"})
	b.usesClaude()
	d := b.desk(b.serve())
	d.open("a.txt")
	d.cursor(2, 1, 3)
	settings := filepath.Join(b.home.Dir, ".claude", "settings.json")
	if err := os.WriteFile(settings, []byte(`{"permissions": {"defaultMode": "default", "disableAutoMode": "disable"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.pollux("setup", "claude")
	c := b.claude("CLAUDE_CODE_AUTO_CONNECT_IDE=")

	b.step("context", func() {
		c.Wait("⧉", second(60))
		first := c.Ask("tell me what I look at")
		text := said(first)
		if !strings.Contains(text, b.path("a.txt")) || !strings.Contains(text, "two") {
			t.Errorf("the model is not told of the selection:\n%s", text)
		}
		if mine := strings.TrimSuffix(b.pollux("context", "--agent", "claude"), "\n"); mine == "" || !strings.Contains(text, mine) {
			t.Errorf("pollux context --agent claude says:\n%s\nand the model is told:\n%s", mine, text)
		}
	})
	b.step("mention", func() {
		if told := b.pollux("mention", "crlf.txt:1-2"); !strings.Contains(told, "Claude Code #1, by its protocol") {
			t.Errorf("pollux mention says %q", told)
		}
		c.Wait("@crlf.txt#L1-2", second(60))
		d.Click(browser.ID("status-sessions")) // the page points at what is selected there
		d.Click(browser.ID("mention"))
		c.Wait("@a.txt#L2 ", second(60))
		d.Click(browser.ID("status-sessions"))
		d.Click(browser.ID("share"))
		b.until("sharing is paused", func() bool { return strings.Contains(b.pollux("status"), "sharing is paused") })
		d.WaitText(browser.ID("status-troubles"), "1 problem")
		d.Click(browser.ID("status-sessions"))
		d.Click(browser.ID("share"))
		b.until("sharing goes on", func() bool { return !strings.Contains(b.pollux("status"), "sharing is paused") })
		if told := b.pollux("mention", "a.txt:3", "--words", "why three?"); !strings.Contains(told, "typed by tmux") {
			t.Errorf("pollux mention says %q", told)
		}
		c.Wait("@a.txt#L3 why three?", second(60))
		b.pollux("mention", "a.txt:1", "--words", "and one?") // another one stands apart
		c.Wait("why three? @a.txt#L1 and one?", second(60))
		if text := b.entered(c.Terminal, c.Model, "why three?"); !strings.Contains(text, "zwei") {
			t.Errorf("the model is not told of what was mentioned:\n%s", text)
		}
	})
	propose := func(prompt, file string, turns ...model.Turn) (from int) {
		t.Helper()
		from = len(c.Model.Requests())
		c.Ask(prompt, turns...)
		d.proposal(file)
		return from
	}
	b.step("accept", func() {
		propose("write a new file", "new.txt", claudeWrites(b.path("new.txt"), "proposed\n"))
		if owner := d.Text(browser.ID("diff-owner")); !strings.Contains(owner, "Claude Code #1") {
			t.Errorf("the title does not say who asks: %q", owner)
		}
		d.Click(browser.ID("accept"))
		b.holds("new.txt", "proposed\n")
		d.noProposal()
	})
	b.step("edit and accept", func() {
		propose("change the first file", "a.txt", claudeReads(b.path("a.txt")), claudeWrites(b.path("a.txt"), "one\n2\nthree\n"))
		d.rewrite("one\nzwei 🎈\nthree\n")
		d.Press("Control+Enter")
		b.holds("a.txt", "one\nzwei 🎈\nthree\n")
		d.noProposal()
	})
	b.step("a file with CRLF", func() {
		propose("change the other file", "crlf.txt", claudeReads(b.path("crlf.txt")), claudeEdits(b.path("crlf.txt"), "zwei", "2"))
		d.Click(browser.ID("accept"))
		b.holds("crlf.txt", "eins\r\n2\r\n")
		d.noProposal()
	})
	b.step("reject", func() {
		propose("something unwanted", "bad.txt", claudeWrites(b.path("bad.txt"), "bad\n"))
		d.Click(browser.ID("reject"))
		d.noProposal()
		if _, err := os.Stat(b.path("bad.txt")); err == nil {
			t.Error("a rejected change was written")
		}
	})
}

// TestClaudeEnds: two proposals of one turn come one after the other; the end of the companion decides nothing, and the end of Claude Code
// takes its proposal away (SPEC CC-8, CC-12).
func TestClaudeEnds(t *testing.T) {
	needClaude(t)
	b := newBench(t, map[string]string{"a.txt": "one\n"})
	b.usesClaude()
	first := b.serve()
	d := b.desk(first)
	c := b.claude()
	b.step("two proposals", func() {
		c.Ask("write two", model.Turn{Calls: append(claudeWrites(b.path("x.txt"), "x\n").Calls, claudeWrites(b.path("y.txt"), "y\n").Calls...)})
		for range 2 {
			d.Wait(browser.ID("accept"))
			name := filepath.Base(strings.Fields(d.Text(browser.ID("diff-title")))[0])
			d.Click(browser.ID("accept"))
			b.holds(name, name[:1]+"\n")
		}
		d.noProposal()
	})
	b.step("companion's end", func() {
		c.Ask("write the last one", claudeWrites(b.path("last.txt"), "proposed\n"))
		d.proposal("last.txt")
		d.Expect("WebSocket")
		d.Expect("net::ERR_")
		first.end(syscall.SIGTERM)
		b.serve()
		if _, err := os.Stat(b.path("last.txt")); err == nil {
			t.Error("the companion's end was taken for an acceptance")
		}
		c.Answer("1. Yes")
		b.holds("last.txt", "proposed\n")
		d.online()
		b.until("Claude Code is back", func() bool { return strings.Contains(b.pollux("status"), "Claude Code #1") })
	})
	b.step("the agent is killed", func() {
		c.Ask("one more", claudeWrites(b.path("orphan.txt"), "proposed\n"))
		d.proposal("orphan.txt")
		b.kills(c)
		d.noProposal()
	})
}

// kills ends an agent as a crash does.
func (b *bench) kills(c *cli.Agent) {
	b.t.Helper()
	p, err := os.FindProcess(c.PID())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestClaudeElsewhere: a proposal that is answered in the terminal closes on the page (SPEC CC-10); the model's own shell decides
// nothing (SPEC CC-15, §11.1); and when the companion is killed, Claude Code comes back to the next one, by the
// token of before, which serves no other process (SPEC A-1), and what the user has written is in the history (SPEC CC-12).
func TestClaudeElsewhere(t *testing.T) {
	needClaude(t)
	b := newScene(t)
	b.usesClaude()
	first := b.serve()
	var again *companion
	d := b.desk(first)
	d.open("a.txt")
	c := b.claude()
	c.Wait("a.txt", second(60))

	b.step("answered in the terminal", func() {
		c.Ask("write it", claudeWrites(b.path("terminal.txt"), "proposed\n"))
		d.proposal("terminal.txt")
		c.Answer("1. Yes")
		b.holds("terminal.txt", "proposed\n")
		d.noProposal()
	})
	runs := func(prompt, command string) {
		c.Ask(prompt, model.Turn{Calls: []model.Call{{Name: "Bash", Args: map[string]any{"command": command, "description": "work"}}}})
	}
	tries := func(name, command string) {
		runs("work "+name, command)
		b.gotNothing(name)
	}
	change := func(prompt, before, after string) { // of a.txt, which the user accepts in a reviewer
		c.Ask(prompt, claudeReads(b.path("a.txt")), claudeEdits(b.path("a.txt"), before, after))
	}
	b.step("the model's shell", func() {
		tries("plain", "node thief.js plain")
		tries("wiped", wiped("node thief.js wiped"))
	})
	tm := b.reviewer(120, 40)
	b.step("a child that left its parents, and a person", func() {
		runs("work behind", "sh behind.sh")
		change("change it", "old", "new")
		tm.Wait("+1 −1 · hunk 1/1", second(60))
		b.gotNothing("orphan")
		b.stays("a.txt", "old\n")
		b.accepts(tm, "a.txt", "new\n")
		d.noProposal()
	})
	b.step("killed and back", func() {
		c.Ask("write one more", claudeWrites(b.path("lost.txt"), "proposed\n"))
		d.proposal("lost.txt")
		d.rewrite("the user's own words\n")
		b.journal("the user's own words")
		older := b.claudeToken(first)
		d.Expect("WebSocket connection")
		first.end(syscall.SIGKILL)
		again = b.serve()
		b.until("Claude Code is back", func() bool { return strings.Count(b.log(), `session="Claude Code #`) >= 2 })
		if b.claudeToken(again) == older {
			t.Error("the token is the one of before (SPEC A-1)")
		}
		if status := knock(t, again, older); status != http.StatusUnauthorized {
			t.Errorf("another process with the token of before: %d", status)
		}
		b.until("the user's words are in the history", func() bool {
			entries, err := filepath.Glob(filepath.Join(b.home.Dir, ".local", "state", "pollux", "history", "*", "*"))
			return err == nil && slices.ContainsFunc(entries, func(file string) bool {
				data, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(data), "the user's own words")
			})
		})
	})
	b.step("the model's shell after that", func() {
		c.Answer("1. Yes") // its question of before still stands in the terminal
		b.holds("lost.txt", "proposed\n")
		tries("again", wiped("node thief.js again"))
		change("change it again", "new", "newer")
		b.accepts(tm, "a.txt", "newer\n")
	})
	b.step("a companion of the model's own", func() {
		b.servesNothing(again, func(command string) { runs("serve", command) })
	})
}

// TestClaudeKept: when the editor has ended, a keeper holds Claude Code's door, and a person beside it decides in pollux review
// (SPEC L-4, §11.1). The model's own shell decides nothing there either.
func TestClaudeKept(t *testing.T) {
	needClaude(t)
	b := newScene(t)
	b.usesClaude()
	b.keeping()
	companion := b.serve()
	c := b.claude()
	tm := b.reviewer(120, 40)
	c.Ask("say something", model.Text("A word from the script.")) // what ends while it is still connecting, it does not come back to
	c.Wait("A word from the script.", second(60))
	b.keptFor(companion)
	b.until("Claude Code is at the keeper", func() bool { return strings.Count(b.log(), `session="Claude Code #`) >= 2 })
	c.Ask("change it", claudeReads(b.path("a.txt")), claudeEdits(b.path("a.txt"), "old", "new"))
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	b.stays("a.txt", "old\n")
	b.accepts(tm, "a.txt", "new\n")
	c.Ask("work", model.Turn{Calls: []model.Call{{Name: "Bash", Args: map[string]any{"command": wiped("node thief.js kept"), "description": "work"}}}})
	b.gotNothing("kept")
}

// claudeToken is the token in the lock that Claude Code finds.
func (b *bench) claudeToken(c *companion) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.home.Dir, ".claude", "ide", fmt.Sprintf("%d.lock", c.Port)))
	var lock struct{ AuthToken string }
	if err == nil {
		err = json.Unmarshal(data, &lock)
	}
	if err != nil || lock.AuthToken == "" {
		b.t.Fatalf("the lock says %s: %v", data, err)
	}
	return lock.AuthToken
}

// knock opens a socket as Claude Code does, and returns the answer's status.
func knock(t *testing.T, c *companion, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", c.Port), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-Claude-Code-Ide-Authorization": token, "Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "mcp",
	} {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// said is all the text of a request.
func said(r *model.Request) string {
	var all strings.Builder
	for _, c := range r.Body.Contents {
		for _, p := range c.Parts {
			all.WriteString(p.Text + "\n")
		}
	}
	return all.String()
}

// entered presses Enter until the model is asked something with these words, and returns what it is told.
func (b *bench) entered(c *terminal.Terminal, m *model.Server, words string) string {
	b.t.Helper()
	fits := func(r *model.Request) bool { return strings.Contains(said(r), words) }
	n := len(m.Requests())
	b.until("the model is asked "+words, func() bool {
		if slices.ContainsFunc(m.Requests()[n:], fits) {
			return true
		}
		c.Keys("Enter")
		return false
	})
	return said(m.Wait(b.t, n, second(60), fits))
}
