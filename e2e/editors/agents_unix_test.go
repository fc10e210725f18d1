//go:build agents && unix

package editors

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/peers"
)

// A guest is one published agent in a terminal of its own, beside the editor.
type guest struct {
	label string // as in control.Session
	ask   func(prompt string, turns ...model.Turn) *model.Request
	// offers is the turn that proposes a new file; nil where the agent shows no diffs.
	offers func(file, text string) model.Turn
}

// TestEveryAgent: all six agents at once beside one Neovim. Each model is told what the user looks at; proposals stand in one
// queue that says whose they are, and each decision reaches the agent that proposed; when the companion is killed, all come
// back, under the numbers of before.
func TestEveryAgent(t *testing.T) {
	for _, p := range []peers.Peer{peers.Gemini, peers.Qwen, peers.Claude, peers.OpenCode, peers.Copilot, peers.Codex} {
		peers.Need(t, p)
	}
	b := newBench(t, neovim(t), map[string]string{"a.txt": "one\ntwo\nthree\n"})
	home := b.agentsHome()
	b.open("a.txt")
	ctl := b.control()
	all := b.guests(home)

	b.step("all are connected")
	b.present(ctl, all)
	b.step("context")
	b.selects("two")
	for _, g := range all {
		b.hasBeenTold(g, "two")
	}
	b.escape()
	b.step("proposals")
	b.decidesAll(ctl, all, "first")

	b.step("the companion is killed")
	before := b.present(ctl, all) // Copilot CLI connects anew just after its start
	old := b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	b.is(b.f.running, b.f.yes)
	ctl.Close()
	ctl = b.control()
	b.selects("three")
	for _, g := range all {
		b.hasBeenTold(g, "three") // Codex asks with its prompts alone
	}
	b.escape()
	if after := b.present(ctl, all); !slices.Equal(after, before) {
		t.Errorf("the sessions are %q, and were %q", after, before)
	}
	b.decidesAll(ctl, all, "second")
}

// guests starts all agents in the project.
func (b *bench) guests(home cli.Home) []*guest {
	b.Helper()
	session := func(s *cli.Session, label string) *guest {
		return &guest{label, s.Ask, func(file, text string) model.Turn { return model.WriteFile(b.path(file), text) }}
	}
	agent := func(a *cli.Agent, label string, offers func(file, text string) model.Turn) *guest {
		return &guest{label, a.Ask, offers}
	}
	calls := func(tool, path, content string) func(string, string) model.Turn {
		return func(file, text string) model.Turn {
			return model.Turn{Calls: []model.Call{{Name: tool, Args: map[string]any{path: b.path(file), content: text}}}}
		}
	}
	codex := cli.StartCodex(b, home, b.project, false)
	codex.IDE()
	return []*guest{
		session(cli.Start(b, home, b.project), "Gemini CLI"),
		session(cli.StartQwen(b, home, b.project), "Qwen Code"),
		agent(cli.StartClaude(b, home, b.project, "CLAUDE_CODE_AUTO_CONNECT_IDE=true"), "Claude Code", calls("Write", "file_path", "content")),
		agent(cli.StartOpenCode(b, home, b.project, nil), "opencode", nil),
		agent(cli.StartCopilot(b, home, b.project), "GitHub Copilot CLI", calls("create", "path", "file_text")),
		agent(codex, "Codex", nil),
	}
}

// present waits until each agent has a session, and returns the names of the sessions that have a number.
func (b *bench) present(ctl *control.Client, all []*guest) (names []string) {
	b.Helper()
	b.untilWithin(cliPatience, "a session of each agent", func() bool {
		sessions, err := ctl.Sessions(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		names = nil
		for _, s := range sessions {
			names = append(names, s.Label)
		}
		slices.Sort(names)
		return !slices.ContainsFunc(all, func(g *guest) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, g.label) })
		}) && len(names) == len(all)
	})
	return names
}

// selects has the user select one word of the file.
func (b *bench) selects(word string) {
	b.Helper()
	b.keys("Escape")
	b.text("gg/" + word + "\r")
	b.is("expand('<cword>')", word)
	b.text("viw")
	b.is("mode()", "v")
}

// hasBeenTold asks an agent until its model is told of the selection: some connect anew just after their start. No prompt is like
// another: what stands on the screen already hides that a new one was swallowed.
func (b *bench) hasBeenTold(g *guest, word string) {
	b.Helper()
	n := 0
	b.untilWithin(cliPatience, g.label+"'s model to be told of "+word, func() bool {
		n++
		told := textOf(g.ask("tell me what I look at, " + word[:2] + itoa(n)))
		return strings.Contains(told, "a.txt") && strings.Contains(told, word)
	})
}

// decidesAll has every agent that can propose a new file at the same time, and the user decide about each as the queue shows
// them: edited where edits count, one accepted as it is, one rejected.
func (b *bench) decidesAll(ctl *control.Client, all []*guest, round string) {
	b.Helper()
	want := map[string]string{} // texts of files, "" for none
	owner := map[string]string{}
	n := 0
	for _, g := range all {
		if g.offers == nil {
			continue
		}
		n++
		file := round + "-" + strings.ToLower(strings.Fields(g.label)[0]) + ".txt"
		owner[file] = g.label
		g.ask("write "+file, g.offers(file, "from "+g.label+"\n"))
		b.until(g.label+"'s proposal", func() bool {
			diffs, err := ctl.Diffs(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			return len(diffs) == n && slices.ContainsFunc(diffs, func(d control.Diff) bool {
				return d.Path == b.path(file) && strings.HasPrefix(d.Owner, g.label+" #")
			})
		})
	}
	for left := len(owner); left > 0; left-- {
		var file string
		b.until("a proposal", func() bool {
			file, _ = strings.CutSuffix(b.eval(b.place()), " <proposal>")
			return owner[file] != "" && want[file] == ""
		})
		label := owner[file]
		b.shows(file, "from "+label+"\n")
		b.tm.Wait(label+" #", patience)
		switch label {
		case "Qwen Code":
			b.reject()
			want[file] = "none"
		case "GitHub Copilot CLI":
			b.accept()
			want[file] = "from " + label + "\n"
		default:
			b.types(1, ", edited")
			b.accept()
			want[file] = "from " + label + ", edited\n"
		}
		b.until("the decision about "+file, func() bool {
			if data, err := os.ReadFile(b.path(file)); want[file] != "none" {
				return err == nil && string(data) == want[file]
			}
			diffs, err := ctl.Diffs(b.Context())
			return err == nil && len(diffs) == left-1
		})
	}
	b.calm("a.txt")
	for file, text := range want {
		if data, err := os.ReadFile(b.path(file)); text == "none" && err == nil {
			b.Errorf("%s was rejected, and is there: %q", file, data)
		} else if text != "none" && string(data) != text {
			b.Errorf("%s holds %q, want %q", file, data, text)
		}
	}
}

// TestCopilotAsksForProblems: Copilot CLI's model is told what the editor's tools found, when it asks by its tool (SPEC GC-5).
func TestCopilotAsksForProblems(t *testing.T) {
	peers.Need(t, peers.Copilot)
	b := newBench(t, neovim(t), map[string]string{"a.txt": "odd\ntwo\n"})
	home := b.agentsHome()
	b.open("a.txt")
	b.ex("lua vim.diagnostic.set(vim.api.nvim_create_namespace('x'), 0, {{lnum = 1, col = 0, severity = 1, message = 'never say two'}})")
	b.finds("a.txt", "1 2:1 never say two")
	copilot := cli.StartCopilot(b, home, b.project)
	b.present(b.control(), []*guest{{label: "GitHub Copilot CLI"}})
	tool := ""
	for _, offered := range copilot.Ask("what can you do?").Body.Tools {
		if name := regexp.MustCompile(`"name": ?"([^"]*get_diagnostics)"`).FindSubmatch(offered); name != nil {
			tool = string(name[1])
		}
	}
	if tool == "" {
		t.Fatal("its model has no tool for problems")
	}
	n := len(copilot.Model.Requests())
	copilot.Ask("what is wrong?", model.Turn{Calls: []model.Call{{Name: tool, Args: map[string]any{}}}})
	copilot.Model.Wait(t, n, cliPatience, func(r *model.Request) bool {
		results := r.Results()
		return len(results) > 0 && strings.Contains(results[0].Response.Output, "never say two")
	})
}
