package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// A guest is one published agent in a terminal of its own.
type guest struct {
	*terminal.Terminal
	model *model.Server
	ask   func(prompt string, turns ...model.Turn) *model.Request
	idle  func() // waits until the agent has done what it was asked
}

func ofSession(s *cli.Session) guest { return guest{s.Terminal, s.Model, s.Ask, s.Idle} }
func ofAgent(a *cli.Agent) guest     { return guest{a.Terminal, a.Model, a.Ask, a.Idle} }

// A habit is how an agent is started, and how its model changes files.
type habit struct {
	label  string
	mark   string // how the terminal shows that b.txt is mentioned; earlier, Enter would be part of what is pasted
	start  func() guest
	writes func(path, text string) []model.Turn          // a new file
	edits  func(path, before, after string) []model.Turn // a file that is there
}

// bomFile has a byte order mark, and characters of two UTF-16 units.
const bomFile = "\ufeffeins 🎈\nzwei\n"

// tellsTheRest tells the stories that do not differ between agents. It begins on a bench with b.txt and bom.txt.
func (b *bench) tellsTheRest(h habit) {
	b.t.Helper()
	user := &pageDriver{page: webtest.Open(b.t, b.serve().Page, "stories")}
	sessions := func(n int) {
		b.t.Helper()
		b.until(strconv.Itoa(n)+" sessions", func() bool {
			var all []struct{ Sessions int }
			_ = json.Unmarshal([]byte(b.pollux("status", "--json")), &all)
			return len(all) == 1 && all[0].Sessions == n
		})
	}
	one := h.start()
	sessions(1)
	b.step("BOM, emoji and 1 MB", func() {
		one.ask("change the file with a mark", h.edits(b.path("bom.txt"), "zwei", "2 🎉")...)
		user.act(b, "diff/accept", nil)
		b.holds("bom.txt", strings.Replace(bomFile, "zwei", "2 🎉", 1))
		large := strings.Repeat("a line of a large file 🎈\n", 1<<20/27)
		one.ask("write a large file", h.writes(b.path("large.txt"), large)...)
		for limit := time.Now().Add(second(180)); len(user.diffs()) == 0 && time.Now().Before(limit); {
			time.Sleep(100 * time.Millisecond) // Copilot CLI draws all the lines in its terminal first
		}
		user.act(b, "diff/accept", nil)
		b.holds("large.txt", large)
	})
	b.step("mention", func() {
		one.idle() // the request that ends the last work names b.txt, too: in its list of the folder
		b.pollux("mention", "b.txt:1-2")
		one.Wait(h.mark, second(60))
		if text := b.entered(one.Terminal, one.model, "b.txt"); !strings.Contains(text, "b.txt") {
			b.t.Errorf("the model reads %s", text)
		}
	})
	var two guest
	b.step("two sessions", func() {
		two = h.start()
		sessions(2)
		one.ask("write the first", h.writes(b.path("first.txt"), "first\n")...)
		two.ask("write the second", h.writes(b.path("second.txt"), "second\n")...)
		b.until("both proposals", func() bool { return len(user.diffs()) == 2 })
		owners := user.owners()
		if owners["first.txt"] != h.label+" #1" || owners["second.txt"] != h.label+" #2" {
			b.t.Errorf("the proposals are of %v", owners)
		}
		user.about(b, "second.txt", "diff/reject")
		user.about(b, "first.txt", "diff/accept")
		b.holds("first.txt", "first\n")
		if _, err := os.Stat(b.path("second.txt")); err == nil {
			b.t.Error("a rejected change was written")
		}
	})
	b.step("the agent is killed", func() {
		one.ask("write an orphan", h.writes(b.path("orphan.txt"), "proposed\n")...)
		user.shown(b)
		b.killsAll(one.PID())
		b.until("no proposal on the page", func() bool { return len(user.diffs()) == 0 })
		sessions(1)
	})
}

// owners says whose the open proposals are, by the names of their files.
func (d *pageDriver) owners() map[string]string {
	var hello struct {
		Diffs []struct{ ID, Path, Owner string }
	}
	all := map[string]string{}
	if d.page.Try("hello", map[string]any{"clientId": "stories"}, &hello) == nil {
		for _, diff := range hello.Diffs {
			all[filepath.Base(diff.Path)] = diff.Owner
		}
	}
	return all
}

// about decides about the proposal for a file.
func (d *pageDriver) about(b *bench, name, method string) {
	b.t.Helper()
	var hello struct{ Diffs []struct{ ID, Path string } }
	if err := d.page.Try("hello", map[string]any{"clientId": "stories"}, &hello); err != nil {
		b.t.Fatal(err)
	}
	for _, diff := range hello.Diffs {
		params := map[string]any{"id": diff.ID}
		if filepath.Base(diff.Path) != name {
			continue
		}
		if err := d.page.Try("diff/read", params, nil); err != nil { // nothing is accepted unseen
			b.t.Fatal(err)
		}
		if err := d.page.Try(method, params, nil); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	b.t.Fatalf("no proposal for %s", name)
}

// killsAll kills a process and all that it has started.
func (b *bench) killsAll(pid int) {
	b.t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		b.t.Fatal(err)
	}
	doomed := []int{pid}
	for i := 0; i < len(doomed); i++ {
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) == 2 && f[1] == strconv.Itoa(doomed[i]) {
				child, _ := strconv.Atoi(f[0])
				doomed = append(doomed, child)
			}
		}
	}
	for _, pid := range slices.Backward(doomed) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

// storyFiles are what tellsTheRest begins with.
func storyFiles() map[string]string {
	return map[string]string{"b.txt": "one\ntwo\n", "bom.txt": bomFile, "a.txt": "old\n"}
}

func TestGeminiStories(t *testing.T) {
	needCLI(t)
	b := newBench(t, storyFiles())
	b.tellsTheRest(habit{
		"Gemini CLI", "@b.txt",
		func() guest { return ofSession(b.gemini("")) },
		func(path, text string) []model.Turn { return []model.Turn{model.WriteFile(path, text)} },
		func(path, before, after string) []model.Turn { return []model.Turn{model.Replace(path, before, after)} },
	})
}

func TestQwenStories(t *testing.T) {
	needQwen(t)
	b := newBench(t, storyFiles())
	b.home.Qwen(t)
	b.tellsTheRest(habit{
		"Qwen Code", "@b.txt",
		func() guest { return ofSession(b.qwen("")) },
		func(path, text string) []model.Turn { return []model.Turn{model.WriteFile(path, text)} },
		func(path, before, after string) []model.Turn {
			return []model.Turn{model.ReadFile(path), {Calls: []model.Call{{
				Name: "edit", Args: map[string]any{"file_path": path, "old_string": before, "new_string": after},
			}}}}
		},
	})
}

func TestClaudeStories(t *testing.T) {
	needClaude(t)
	b := newBench(t, storyFiles())
	b.usesClaude()
	b.tellsTheRest(habit{
		"Claude Code", "@b.txt",
		func() guest { return ofAgent(b.claude()) },
		func(path, text string) []model.Turn { return []model.Turn{claudeWrites(path, text)} },
		func(path, before, after string) []model.Turn {
			return []model.Turn{claudeReads(path), claudeEdits(path, before, after)}
		},
	})
}

// SPEC L-1: the end of the companion takes Qwen Code's proposal back, and nothing is written; it is connected again by itself.
func TestQwenEnds(t *testing.T) {
	needQwen(t)
	defer tells(t, "companion's end")
	b := newBench(t, map[string]string{"a.txt": "old\n"})
	c, user := b.serveQwen()
	s := b.qwen("")
	connected(s)
	s.Ask("change it", b.overwrite("a.txt", "new\n")...)
	user.shown(b)
	c.end(syscall.SIGTERM)
	s.Idle()
	b.stays("a.txt", "old\n")
	again := b.serve()
	user = &pageDriver{page: webtest.Open(t, again.Page, "qwen")}
	connected(s)
	s.Ask("once more", b.overwrite("a.txt", "after the restart\n")...)
	user.act(b, "diff/accept", nil)
	b.holds("a.txt", "after the restart\n")
}
