package agent

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// SPEC C-8: each row of the table in docs/using.md is true: what it says to be obeyed keeps a file from the agents that it names, in any
// folder, and nothing else does.
func TestWhichIgnoreFileBinds(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "docs", "using.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "**Which ignore file binds whom.**")
	contents := map[string]string{ // of the files that are not in the form of a .gitignore
		".claude/settings.json":       `{"permissions": {"deny": ["Read(./hidden)"]}}`,
		".claude/settings.local.json": `{"permissions": {"deny": ["Read(hidden)"]}}`,
		"opencode.json":               `{"permission": {"read": {"*hidden": "deny"}}}`,
		".opencode/opencode.json":     `{"permission": {"read": {"*hidden": "deny"}}}`,
	}
	rows, names := 0, 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(line, "`") {
			if rows > 0 {
				break
			}
			continue
		}
		rows++
		for i, name := range strings.Split(cells[1], "`") {
			if i%2 == 0 || strings.Contains(name, "(") || name == "permission" || name == "permissions.deny" || strings.HasPrefix(name, "~") || strings.Contains(name, "managed") {
				continue
			}
			names++
			for _, folder := range []string{"", "sub"} {
				tryIgnoreFile(t, strings.TrimSpace(cells[2]), filepath.Join(folder, filepath.FromSlash(name)), folder, cmp.Or(contents[name], "hidden\n"))
			}
		}
	}
	if rows != 7 || names != 11 {
		t.Errorf("%d rows with %d names were tried", rows, names)
	}
}

// tryIgnoreFile compares what a file hides with what the table says about it.
func tryIgnoreFile(t *testing.T, says, file, folder, text string) {
	t.Helper()
	base := paths.Real(t.TempDir())
	o := &workspace.Options{Deniers: Deniers(func(string) string { return "" })}
	put := func(name, text string) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if filepath.Base(file) == "ignore" { // the setting
		o.NeverShare = []string{"hidden"}
	} else {
		put(file, text)
	}
	hidden, open := put(filepath.Join(folder, "hidden"), ""), put(filepath.Join(folder, "open"), "")
	w, err := workspace.New([]string{base}, o)
	if err != nil {
		t.Fatal(err)
	}
	if list := w.Withheld(); len(list) > 0 {
		t.Fatal(list)
	}
	for _, a := range All() {
		obeyed := says == "obeyed" || says == "obeyed for "+a.Label
		share, denied := w.Sharing(), w.Denying()
		if got := share(hidden) && !denied(a.Name, hidden); got == obeyed {
			t.Errorf("%s: the table says %q, and %s may be told: %v", file, says, a.Name, got)
		}
		if !share(open) || denied(a.Name, open) {
			t.Errorf("%s hides more from %s than it names", file, a.Name)
		}
	}
}
