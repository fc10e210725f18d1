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
}
