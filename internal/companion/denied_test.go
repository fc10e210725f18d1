package companion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/claude"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// SPEC C-8: a file that Claude Code's own settings keep from its tools is named to opencode, but not to Claude Code: not by context, not by a tool,
// not by a mention. New rules count.
func TestDeniedC8(t *testing.T) {
	c, o, file := sharing(t, nil)
	one, other := look(t, c, "claude-code"), look(t, c, "opencode")
	one.hears(file)
	other.hears(file)
	settings := filepath.Join(o.Roots[0], ".claude", "settings.json")
	rules := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.store.Touch()
	}
	rules(`{"permissions": {"deny": ["Read(/f)"]}}`)
	one.hears("")
	for _, tool := range []string{"getCurrentSelection", "getOpenEditors", "getDiagnostics"} {
		if got := one.answers(tool); strings.Contains(got, "secret") || strings.Contains(got, filepath.Base(file)+`"`) {
			t.Errorf("%s says %s", tool, got)
		}
	}
	if got := other.answers("getOpenEditors"); !strings.Contains(got, filepath.Base(file)) {
		t.Errorf("the other agent is told %s", got)
	}
	mention := func(agent string) error {
		_, err := c.mention(t.Context(), control.Mention{Agent: agent, Path: file, First: 1, Last: 1})
		return err
	}
	if err := mention("claude"); err == nil || !strings.Contains(err.Error(), "from Claude Code by its own settings") {
		t.Errorf("a mention: %v", err)
	}
	if err := mention(claude.OpenCode); err != nil {
		t.Errorf("a mention to the other: %v", err)
	}
	if all := c.store.Snapshot().ForAll(); len(all.Files)+len(all.Diagnostics) > 0 || all.Active != "" {
		t.Errorf("a model's shell is told %+v", all)
	}
	rules(`{"permissions": {"deny": ["Read(/g)"]}}`)
	one.hears(file)
	rules(`{"permissions": `)
	one.hears("")
	if list := c.troubles(); len(list) == 0 || !strings.Contains(list[0].What, "is shared with Claude Code") || !strings.Contains(list[0].What, settings) {
		t.Errorf("%+v", list)
	}
}

// What another companion lends keeps what that companion found out.
func TestDeniedIsLent(t *testing.T) {
	c, _, file := sharing(t, nil)
	c.store.Lend("another", &state.Snapshot{
		Files: []state.File{{Path: file}}, Active: file, Denied: map[string][]string{"claude": {file}},
	}, true)
	snap := c.store.Snapshot()
	if got := snap.For("claude"); got.Active != "" || len(got.Files) > 0 {
		t.Errorf("Claude Code is told %+v", got)
	}
	if got := snap.For(claude.OpenCode); got.Active != file || len(got.Files) != 1 {
		t.Errorf("opencode is told %+v", got)
	}
}

// SPEC C-8: what keeps files from agents counts as soon as it is written, without a move of the user's: an ignore file and an agent's settings,
// in a folder that was not there before, in one that the file lies in, or in the user's home; and as soon as it is changed or removed.
func TestRulesAreFollowedC8(t *testing.T) {
	c, o, _ := sharing(t, nil)
	useClaude(t)
	sub := filepath.Join(o.Roots[0], "sub", "below")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(sub, "kept")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.store.Report("test", state.Report{Active: file, Open: []string{file}})
	one, other := look(t, c, "claude-code"), look(t, c, "opencode")
	one.hears(file)
	other.hears(file)
	deny, allow := `{"permissions": {"deny": ["Read(**/kept)"]}}`, `{"permissions": {"deny": []}}`
	for name, tt := range map[string]struct {
		path, keeps, shows string
		from               []looker
	}{
		"the ignore file of the folder above": {filepath.Join(o.Roots[0], "sub", ".aiexclude"), "below/kept\n", "below/other\n", []looker{one, other}},
		"the project's ignore file":           {filepath.Join(o.Roots[0], ".geminiignore"), "kept\n", "other\n", []looker{one, other}},
		"the project's settings":              {filepath.Join(o.Roots[0], ".claude", "settings.json"), deny, allow, []looker{one}},
		"the user's settings":                 {filepath.Join(os.Getenv("HOME"), ".claude", "settings.json"), deny, allow, []looker{one}},
		"opencode's settings":                 {filepath.Join(o.Roots[0], "opencode.json"), `{"permission": {"read": {"*kept": "deny"}}}`, `{}`, []looker{other}},
	} {
		_ = os.MkdirAll(filepath.Dir(tt.path), 0o700)
		for _, step := range []struct{ text, told string }{{tt.keeps, ""}, {tt.shows, file}, {tt.keeps, ""}, {"", file}} {
			err := os.WriteFile(tt.path, []byte(step.text), 0o600)
			if step.text == "" {
				err = os.Remove(tt.path)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %q", name, step.text)
			for _, l := range tt.from {
				l.hears(step.told)
			}
		}
	}
}
