package ide

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SPEC I-3: VS Code's family, installed by its own command, here a stand-in.
func TestFork(t *testing.T) {
	home := t.TempDir()
	program := filepath.Join(home, ".local", "bin", "codium")
	write(t, program, "#!/bin/sh\necho \"$@\" >> '"+home+"/said'\n[ \"$1\" != --uninstall-extension ] || { echo no such extension; exit 1; }\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, error) { return "", fs.ErrNotExist }
	m := Machine{OS: "linux", Home: home, Getenv: func(string) string { return "" }}
	command, ok, err := m.Fork("vscodium", none)
	if err != nil || !ok || command != program {
		t.Fatalf("%q, %v, %v", command, ok, err)
	}
	if err := RunFork(t.Context(), command, false); err != nil {
		t.Error(err)
	}
	if err := RunFork(t.Context(), command, true); err == nil || !strings.Contains(err.Error(), "no such extension") {
		t.Error(err)
	}
	if said, _ := os.ReadFile(filepath.Join(home, "said")); !strings.HasPrefix(string(said), "--install-extension google.gemini-cli-vscode-ide-companion --force\n") {
		t.Errorf("%s", said)
	}
	if _, ok, err := m.Fork("windsurf", none); !ok || !errors.Is(err, ErrNoCommand) {
		t.Errorf("%v, %v", ok, err)
	}
	if _, ok, _ := m.Fork("ed", none); ok {
		t.Error("ed is no fork of VS Code")
	}
	for _, os := range []string{"darwin", "windows", "linux"} {
		m.OS = os
		for _, name := range Forks() {
			if len(m.forkPlaces(forks()[name])) == 0 {
				t.Errorf("%s has no places on %s", name, os)
			}
		}
	}
}

func TestSnippets(t *testing.T) {
	for _, editor := range Snippets() {
		if where, text, ok := Snippet(editor, "/opt/pollux"); !ok || where == "" || !strings.Contains(text, "/opt/pollux") || !strings.Contains(text, "lsp") {
			t.Errorf("%s: %q", editor, text)
		}
	}
}
