package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The help of each command, with an example; go test -update rewrites the files.
func TestHelp(t *testing.T) {
	names := []string{"", "serve", "run", "env", "status", "doctor", "conform", "relay", "context", "diff", "open", "review", "page", "stop", "mention", "share", "pause", "resume", "lsp", "install", "uninstall", "setup", "detect", "version", "completion", "sandbox", "sandbox check", "extensions", "mcp"}
	for _, name := range []string{"install", "link", "uninstall", "update", "list", "describe", "enable", "disable", "config", "search", "export", "new", "validate", "schema", "run", "consent", "consent list", "consent grant", "consent revoke", "audit", "prompt", "read", "call", "respond", "serve", "bridge", "bridge install", "bridge remove", "bridge status"} {
		names = append(names, "extensions "+name)
	}
	for _, name := range names {
		file := filepath.Join("testdata", "help", strings.ReplaceAll(name, " ", "-")+".txt")
		if name == "" {
			file = filepath.Join("testdata", "help", "pollux.txt")
		}
		var out, errs bytes.Buffer
		if code := Main(append(strings.Fields(name), "--help"), nil, &out, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", name, code, &errs)
		}
		if *update {
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v; run: go test ./internal/cli -update", err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("pollux %s --help differs from %s; run: go test ./internal/cli -update\n%s", name, file, diff)
		}
		for line := range strings.Lines(out.String()) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 120 {
				t.Errorf("pollux %s --help has a line of %d characters: %s", name, len(line), line)
			}
		}
	}
}

// Without a command pollux shows what it can do.
func TestNoCommand(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	var out, errs bytes.Buffer
	if code := Main(nil, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), "pollux serve") {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
}

// The completion of every shell is written, without terminal colours.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errs bytes.Buffer
		if code := Main([]string{"completion", shell}, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), "pollux") {
			t.Errorf("%s: exit code %d, %s", shell, code, &errs)
		}
	}
}

// The shell completes files and folders exactly where they are asked for.
func TestCompleteFiles(t *testing.T) {
	for line, want := range map[string]string{
		"diff|": ":0", "diff|a|--from|": ":0", "diff|--as|": ":0", "diff|-o|": ":0", "open|": ":0", "review|": ":16", "context|": ":16",
		"doctor|--cwd|": ":16", "conform|--token-file|": ":0", "conform|--dir|": ":16", "relay|--tmp|": ":16", "status|": ":4", "doctor|--pid|": ":4",
	} {
		var out, errs bytes.Buffer
		Main(append([]string{"__complete"}, strings.Split(line, "|")...), nil, &out, &errs)
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%s: %q, want %q; %s", line, got, want, &errs)
		}
	}
}
