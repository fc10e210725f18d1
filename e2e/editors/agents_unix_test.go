//go:build agents && unix

package editors

import (
	"flag"
	"os"
	"path/filepath"
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
	offers   func(file, text string) model.Turn
	readOnly bool     // it takes no edits
	passed   []string // stories
}

func (g *guest) passes(story string) {
	if !slices.Contains(g.passed, story) {
		g.passed = append(g.passed, story)
	}
}

var matrix = flag.Bool("matrix", false, "write into docs/agents.md which stories passed with which agents on which editors") //nolint:gochecknoglobals // of the run

// TestEveryAgent: all six agents at once beside one editor, for each editor. Each model is told what the user looks at; proposals
// stand in one queue that says whose they are, and each decision reaches the agent that proposed; when the companion is killed, all
// come back, under the numbers of before.
func TestEveryAgent(t *testing.T) {
	for _, p := range []peers.Peer{peers.Gemini, peers.Qwen, peers.Claude, peers.OpenCode, peers.Copilot, peers.Codex} {
		peers.Need(t, p)
	}
	var all table
	for _, editor := range []func(*testing.T) flavour{neovim, vim, emacs} {
		f := editor(t)
		t.Run(f.display, func(t *testing.T) { all.row(f.display, besideAll(t, f)) })
	}
	if *matrix && !t.Failed() {
		all.write(t)
	}
}

// besideAll is the story on one editor. It returns the agents, with what each has passed.
func besideAll(t *testing.T, f flavour) []*guest {
	t.Helper()
	b := newBench(t, f, map[string]string{"a.txt": "one\ntwo\n", "b.txt": "three\nfour\n"})
	home := b.agentsHome()
	b.open("a.txt")
	ctl := b.control()
	all := b.guests(home)

	b.step("all are connected")
	b.present(ctl, all)
	b.step("context")
	b.showsAll(all, "two")
	b.step("proposals")
	b.decidesAll(ctl, all, 0)

	b.step("the companion is killed")
	before := b.present(ctl, all) // Copilot CLI connects anew just after its start
	old := b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	b.is(b.f.running, b.f.yes)
	ctl.Close()
	ctl = b.control()
	b.visit("b.txt")
	b.calm("b.txt")
	b.showsAll(all, "four") // Codex asks with its prompts alone
	if after := b.present(ctl, all); !slices.Equal(after, before) {
		t.Errorf("the sessions are %q, and were %q", after, before)
	}
	for _, g := range all {
		g.passes("killed and back")
	}
	b.decidesAll(ctl, all, 1)
	b.decidesAll(ctl, all, 2)
	return all
}

// showsAll has the user select the file at hand, until every agent's model has been told.
func (b *bench) showsAll(all []*guest, word string) {
	b.Helper()
	b.selectAll()
	for _, g := range all {
		b.hasBeenTold(g, word)
		g.passes("context")
	}
	b.unselect()
}

// guests starts all agents in the project.
func (b *bench) guests(home cli.Home) []*guest {
	b.Helper()
	session := func(s *cli.Session, label string) *guest {
		return &guest{label: label, ask: s.Ask, offers: func(file, text string) model.Turn { return model.WriteFile(b.path(file), text) }}
	}
	agent := func(a *cli.Agent, label string, offers func(file, text string) model.Turn) *guest {
		return &guest{label: label, ask: a.Ask, offers: offers}
	}
	calls := func(tool, path, content string) func(string, string) model.Turn {
		return func(file, text string) model.Turn {
			return model.Turn{Calls: []model.Call{{Name: tool, Args: map[string]any{path: b.path(file), content: text}}}}
		}
	}
	codex := cli.StartCodex(b, home, b.project, false)
	codex.IDE()
	copilot := agent(cli.StartCopilot(b, home, b.project), "GitHub Copilot CLI", calls("create", "path", "file_text"))
	copilot.readOnly = true
	return []*guest{
		session(cli.Start(b, home, b.project), "Gemini CLI"),
		session(cli.StartQwen(b, home, b.project), "Qwen Code"),
		agent(cli.StartClaude(b, home, b.project, "CLAUDE_CODE_AUTO_CONNECT_IDE=true"), "Claude Code", calls("Write", "file_path", "content")),
		agent(cli.StartOpenCode(b, home, b.project, nil), "opencode", nil),
		copilot,
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

// hasBeenTold asks an agent until its model is told of the selection: some connect anew just after their start. No prompt is like
// another: what stands on the screen already hides that a new one was swallowed.
func (b *bench) hasBeenTold(g *guest, word string) {
	b.Helper()
	n := 0
	b.untilWithin(cliPatience, g.label+"'s model to be told of "+word, func() bool {
		n++
		told := textOf(g.ask("tell me what I look at, " + word[:2] + itoa(n)))
		return strings.Contains(told, ".txt") && strings.Contains(told, word)
	})
}

// decidesAll has every agent that can propose a new file at the same time, and the user decide about each as the queue shows
// them: in each round some are edited, some rejected and some accepted as they are. In three rounds each agent has met all three.
func (b *bench) decidesAll(ctl *control.Client, all []*guest, round int) {
	b.Helper()
	type proposal struct {
		from            *guest
		decision, wants string
	}
	open := map[string]*proposal{}
	for _, g := range all {
		if g.offers == nil {
			continue
		}
		file := itoa(round) + "-" + strings.ToLower(strings.Fields(g.label)[0]) + ".txt"
		p := &proposal{g, []string{"edit and accept", "reject", "accept"}[(len(open)+round)%3], "from " + g.label + "\n"}
		if p.decision == "edit and accept" && g.readOnly {
			p.decision = "accept"
		}
		g.ask("write "+file, g.offers(file, p.wants))
		open[file] = p
		b.until(g.label+"'s proposal", func() bool {
			diffs, err := ctl.Diffs(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			return len(diffs) == len(open) && slices.ContainsFunc(diffs, func(d control.Diff) bool {
				return d.Path == b.path(file) && strings.HasPrefix(d.Owner, g.label+" #")
			})
		})
	}
	for len(open) > 0 {
		var file string
		var p *proposal
		b.until("a proposal", func() bool {
			file, _ = strings.CutSuffix(b.eval(b.place()), " <proposal>")
			p = open[file]
			return p != nil
		})
		delete(open, file)
		b.shows(file, p.wants)
		b.tm.Wait(p.from.label+" #", patience)
		switch p.decision {
		case "reject":
			b.reject()
		case "edit and accept":
			b.types(1, ", edited")
			p.wants = "from " + p.from.label + ", edited\n"
			fallthrough
		default:
			b.accept()
		}
		b.until("the decision about "+file, func() bool {
			data, err := os.ReadFile(b.path(file))
			diffs, asked := ctl.Diffs(b.Context())
			decided := asked == nil && len(diffs) == len(open)
			if p.decision == "reject" {
				return decided && os.IsNotExist(err)
			}
			return decided && err == nil && string(data) == p.wants
		})
		p.from.passes(p.decision)
	}
}

// A table says which stories the agents have passed on each editor.
type table struct{ labels, rows []string }

func (t *table) row(editor string, all []*guest) {
	t.labels = nil
	line := "| " + editor + " |"
	for _, g := range all {
		t.labels = append(t.labels, g.label)
		slices.SortFunc(g.passed, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		line += " " + strings.Join(g.passed, ", ") + " |"
	}
	t.rows = append(t.rows, line)
}

// order is that of the stories in a cell.
var order = []string{"context", "accept", "edit and accept", "reject", "killed and back"} //nolint:gochecknoglobals // constant

const tableBegin, tableEnd = "<!-- editors: written by .ci/long agents -->\n", "<!-- editors end -->\n"

func (t *table) write(test *testing.T) {
	test.Helper()
	file := filepath.Join("..", "..", "docs", "agents.md")
	data, err := os.ReadFile(file)
	if err != nil {
		test.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(data), tableBegin)
	_, tail, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		test.Fatal("docs/agents.md has no place for the table")
	}
	lines := append([]string{"| editor | " + strings.Join(t.labels, " | ") + " |", "| ---" + strings.Repeat(" | ---", len(t.labels)) + " |"}, t.rows...)
	if err := os.WriteFile(file, []byte(head+tableBegin+strings.Join(lines, "\n")+"\n"+tableEnd+tail), 0o600); err != nil {
		test.Fatal(err)
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
