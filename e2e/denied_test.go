package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// A denial is a folder with settings of an agent, and what the agent's model tries to read there.
type denial struct {
	files map[string]string // "~/…" lies in the home folder; $ROOT stands for the project's folder
	cwd   string
	reads []string
}

func (b *bench) place(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(b.home.Dir, rest)
	}
	return b.path(name)
}

// denied has the published agent try to read files, and compares: what the agent denies to its tools, pollux does not name to it. tool is its
// tool for reading, with the name of its argument. start returns its command and environment.
func (d denial) denied(t *testing.T, name, tool, argument string, start func(b *bench, m *model.Server) (args, env []string)) (denied, told int) {
	t.Helper()
	b := newBench(t, nil)
	put := func(file, text string) {
		if err := os.MkdirAll(filepath.Dir(b.place(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.place(file), []byte(strings.ReplaceAll(text, "$ROOT", b.path(""))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := model.Start(t)
	args, env := start(b, m)
	for file, text := range d.files {
		put(file, text)
	}
	var calls []model.Call
	for _, file := range d.reads {
		put(file, "the text of <"+file+">\n")
		calls = append(calls, model.Call{Name: tool, Args: map[string]any{argument: b.place(file)}})
	}
	if err := os.MkdirAll(b.path(d.cwd), 0o700); err != nil {
		t.Fatal(err)
	}
	m.Script("read", model.Turn{Calls: calls})
	ctx, cancel := context.WithTimeout(t.Context(), second(90))
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = b.path(d.cwd), b.home.Env(env...)
	out, err := cmd.CombinedOutput()
	answers := ""
	for _, r := range m.Requests() {
		for _, content := range r.Body.Contents {
			for _, part := range content.Parts {
				if part.FunctionResponse != nil {
					answers += part.FunctionResponse.Response.Output + part.FunctionResponse.Response.Error
				}
			}
		}
	}
	if answers == "" && err != nil {
		t.Fatalf("%s says: %v\n%s", name, err, out)
	}
	o := &workspace.Options{ShareOutside: true, Deniers: agent.Deniers(func(variable string) string {
		return map[string]string{"HOME": b.home.Dir}[variable]
	})}
	for i := range o.Deniers {
		o.Deniers[i].Folders = func() []string { return []string{b.path(d.cwd)} }
	}
	w, err := workspace.New([]string{b.path("")}, o)
	if err != nil {
		t.Fatal(err)
	}
	keeps := w.Denying()
	for _, file := range d.reads {
		denies, tells := !strings.Contains(answers, "the text of <"+file+">"), !keeps(name, b.place(file))
		if denies && tells {
			t.Errorf("with %v, %s may not read %s, and is told of it", d.files, name, file)
		}
		if denies {
			denied++
		}
		if tells {
			told++
		}
	}
	return denied, told
}

// TestDeniedClaude: what the published Claude Code keeps from its own tools, pollux does not name to it, and not much more (SPEC C-8, CC-18).
func TestDeniedClaude(t *testing.T) {
	needClaude(t)
	deny := func(rules ...string) string {
		return `{"permissions": {"deny": ["` + strings.Join(rules, `", "`) + `"]}}`
	}
	for name, tc := range map[string]struct {
		denial
		denied, told int
	}{
		"forms": {denial{
			files: map[string]string{
				"~/.claude/settings.json": deny("Read(./u1)", "Read(/u2)", "Read(u3)", "Read(~/u4)", "Read(/$ROOT/u5)", "Read($ROOT/u6)"),
				".claude/settings.json": deny("Read(./p1)", "Read(/p2)", "Read(dir1)", "Read(dir2/)", "Read(dir3/**)", "Read(dir4/*)", "Edit(p4)", "Read(~/p5)", "Read(*.key)",
					"Read(./**/deep.txt)", "Read(P6)", "Read(p7) ", "read(p9)", "Read(p[1]4)", "Read(#p19)", "Read(a b)", "Read(p(1))", "Read(Ä?)", "Read(?.x)"),
				".claude/settings.local.json": deny("Read(l1)"),
				"sub/.claude/settings.json":   deny("Read(s1)"),
			},
			reads: []string{"u1", "u2", "~/.claude/u2", "u3", "sub/u3", "~/u4", "u5", "u6", "p1", "sub/p1", "p2", "sub/p2", "dir1/a", "dir2/a", "dir3/a", "dir4/a", "dir4/b/c", "p4",
				"~/p5", "a.key", "sub/a.key", "~/b.key", "sub/x/deep.txt", "deep.txt", "p6", "p7", "p9", "p14", "#p19", "a b", "p(1)", "äö", "ö.x", "l1", "s1", "sub/s1"},
		}, 24, 5},
		"below":      {denial{map[string]string{".claude/settings.json": deny("Read(p1)", "Read(/p2)"), "sub/.claude/settings.json": deny("Read(s1)", "Read(/$ROOT/s2)", "Read(../s3)")}, "sub", []string{"p1", "s1", "s2", "sub/s1", "free"}}, 2, 2},
		"comments":   {denial{map[string]string{"~/.claude/settings.json": "// not loaded\n" + deny("Read(p1)")}, "", []string{"p1"}}, 0, 0},
		"everything": {denial{map[string]string{".claude/settings.json": deny("Re*")}, "", []string{"p1", "sub/p1", "~/x"}}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			denied, told := tc.denial.denied(t, "claude", "Read", "file_path", func(b *bench, m *model.Server) ([]string, []string) {
				b.usesClaude()
				return peers.Command(t, peers.Claude, "-p", "read", "--dangerously-skip-permissions"), []string{
					"ANTHROPIC_BASE_URL=" + m.URL(), "ANTHROPIC_API_KEY=sk-ant-none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
				}
			})
			if name == "comments" && denied > 0 {
				t.Error("Claude Code loads settings with comments: pollux setup need not refuse them")
			}
			if denied < tc.denied || told < tc.told {
				t.Errorf("it denies %d files, at least %d were expected; it is told of %d, at least %d were expected", denied, tc.denied, told, tc.told)
			}
		})
	}
}

// TestDeniedElsewhere: what a Claude Code denies to its tools in a folder that only its own environment names is not named to it
// (SPEC C-8, CC-1, CC-18).
func TestDeniedElsewhere(t *testing.T) {
	needClaude(t)
	b := newBench(t, map[string]string{"a.txt": "one\n", "kept.txt": "two\n"})
	b.usesClaude()
	d := b.desk(b.serve())
	own := filepath.Join(b.home.Dir, "own")
	settings := `{"permissions": {"defaultMode": "default", "disableAutoMode": "disable", "deny": ["Read(kept.txt)"]}}`
	if err := errors.Join(os.Mkdir(own, 0o700), os.WriteFile(filepath.Join(own, "settings.json"), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := b.claude("CLAUDE_CONFIG_DIR=" + own)
	d.open("a.txt")
	c.Wait("In a.txt", second(60))
	d.open("kept.txt")
	c.Until("nothing is named", second(60), func(screen string) bool { return !strings.Contains(screen, "In a.txt") })
	if screen, text := c.Screen(), said(c.Ask("what do I look at")); strings.Contains(screen+text, "kept.txt") {
		t.Errorf("it is told of a file that its settings deny:\n%s\n%s", screen, text)
	}
}
