package companion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/claude"
	"github.com/pollux-companion/pollux/internal/control"
)

// A mention reaches the one session that is meant. A withheld file, and text that nobody could have typed, reaches none.
func TestMention(t *testing.T) {
	o, root, _ := options(t)
	for name, content := range map[string]string{"a.txt": "one\r\ntwo\nthree", ".env": "K=1", ".geminiignore": "hidden\n", "hidden": "x"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(os.Getenv("HOME"), ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := start(t, o)
	a := filepath.Join(root, "a.txt")
	if _, err := c.mention(t.Context(), control.Mention{Path: a}); err == nil || !strings.Contains(err.Error(), "no agent is connected") {
		t.Errorf("without an agent: %v", err)
	}
	token := c.record.Others["claude"].Token
	for range 2 {
		d, err := claude.Dial(t.Context(), c.Info().Port, token, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		if _, err := d.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		m    control.Mention
		want string // of the error; "" for none
	}{
		"a file":             {control.Mention{Session: 1, Path: a}, ""},
		"lines":              {control.Mention{Session: 2, Path: a, First: 1, Last: 2}, ""},
		"a folder":           {control.Mention{Session: 2, Path: root}, ""},
		"which one":          {control.Mention{Path: a}, "say which one by its number: Claude Code #1, Claude Code #2"},
		"nobody":             {control.Mention{Session: 3, Path: a}, "no such session"},
		"another agent":      {control.Mention{Agent: "gemini", Path: a}, "no such session"},
		"a secret":           {control.Mention{Session: 1, Path: filepath.Join(root, ".env")}, "holds secrets"},
		"an ignored one":     {control.Mention{Session: 1, Path: filepath.Join(root, "hidden")}, ".geminiignore"},
		"outside":            {control.Mention{Session: 1, Path: filepath.Dir(root)}, "outside"},
		"not there":          {control.Mention{Session: 1, Path: filepath.Join(root, "none")}, "no such file"},
		"the lines 0 to 1":   {control.Mention{Session: 1, Path: a, Last: 1}, "the first is 1"},
		"the lines 3 to 1":   {control.Mention{Session: 1, Path: a, First: 3, Last: 1}, "the first is 1"},
		"Enter":              {control.Mention{Session: 1, Path: a, Words: "yes\r"}, "one line of visible text"},
		"an escape":          {control.Mention{Session: 1, Path: a, Words: "\x1b[201~x"}, "one line of visible text"},
		"a name with a line": {control.Mention{Session: 1, Path: a + "\n"}, "one line of visible text"},
	} {
		done, err := c.mention(t.Context(), tt.m)
		switch {
		case tt.want == "" && (err != nil || done.By != "protocol"):
			t.Errorf("%s: %+v, %v", name, done, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if got := linesOf(control.Mention{Path: a, First: 1, Last: 2}); got != "one\r\ntwo" {
		t.Errorf("the lines: %q", got)
	}
}

// A name is typed as a person would have to type it to that agent.
func TestTypedAs(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"a b(1).txt", "plain"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	me := os.Getpid()
	for _, tt := range []struct {
		agent string
		m     control.Mention
		want  string
	}{
		{"gemini", control.Mention{Path: filepath.Join(dir, "plain")}, "@plain "},
		{"gemini", control.Mention{Path: filepath.Join(dir, "a b(1).txt"), First: 2, Last: 2}, `@a\ b\(1\).txt line 2 `},
		{"qwen", control.Mention{Path: filepath.Join(dir, "plain"), First: 2, Last: 4, Words: "why?"}, "@plain lines 2-4 why?"},
		{"claude", control.Mention{Path: filepath.Join(dir, "plain"), First: 2, Last: 4, Words: "why?"}, "@plain#L2-4 why?"},
		{"claude", control.Mention{Path: filepath.Join(dir, "plain"), First: 4, Last: 4}, "@plain#L4 "},
		{"gemini", control.Mention{Path: "/nowhere/x"}, "@/nowhere/x "},
	} {
		if got := typedAs(tt.agent, me, tt.m); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// The lines of what is no file are not read: the companion never waits for it.
func TestLinesOfNoFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "two", dir: "", filepath.Join(dir, "none"): "", os.DevNull: "", "/proc/self/status": ""} {
		if got := linesOf(control.Mention{Path: path, First: 2, Last: 2}); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}
