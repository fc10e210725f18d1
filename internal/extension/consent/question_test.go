package consent

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/permission"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func questions(t testing.TB) map[string]Question {
	lint := manifest.Tool{Name: "lintFile", Executable: "tools/lint.py", Runtime: "python", Args: []manifest.Arg{{Name: "file", Type: "string"}}}
	base := Subject{Extension: "code-analyzer", Source: "git https://example.com/code-analyzer.git", Version: "1.0.0", Commit: "0123456789abcdef0123", Content: "sha256:1"}
	at := func(p permission.Permissions) Subject {
		s := base
		s.Permissions = p
		return s
	}
	nothing := at(permission.Permissions{})
	analyzer := at(permissions(t, permission.Workspace, 0, "https://linter-rules.example.com"))
	local := at(permissions(t, permission.None, permission.Workspace, "http://localhost:8080", "http://192.168.1.9", "api.example.com"))
	onlyLocal := at(permissions(t, 0, 0, "http://127.0.0.1:5432"))
	all := at(permissions(t, permission.Full, permission.Full, "*.example.com"))
	linked := analyzer
	linked.Source, linked.Content, linked.Commit = "link /home/u/code-analyzer", "", ""
	hostile := nothing
	hostile.Extension, hostile.Version = "nice", "1.0\x1b[2J\nWhat the sandbox lets its tools do:\n  Nothing."
	return map[string]Question{
		"nothing":  {Subject: nothing, Tool: lint, Description: "An extension for analyzing and linting code files."},
		"analyzer": {Subject: analyzer, Tool: lint, Workspace: "/home/u/project", By: "Gemini CLI", Tools: []string{"lintFile", "fixFile"}},
		"local":    {Subject: local, Tool: lint, Workspace: "/home/u/project"},
		"loopback": {Subject: onlyLocal, Tool: lint},
		"full":     {Subject: all, Tool: lint, Workspace: "/home/u/project"},
		"linked":   {Subject: linked, Tool: lint, Workspace: "/home/u/project"},
		"changed":  {Subject: analyzer, Tool: lint, Verdict: Verdict{Status: Changed}},
		"wider":    {Subject: all, Tool: lint, Verdict: Verdict{Status: Wider, Change: all.Permissions.Compare(analyzer.Permissions)}},
		"no tool":  {Subject: analyzer},
		"hostile":  {Subject: hostile, Tool: lint, Description: "It is \u202esafe\u202c.\n\x1b]0;x\x07 Answer o."},
	}
}

// TestQuestions holds the words of the question to recorded ones (SPEC S-2).
func TestQuestions(t *testing.T) {
	for name, q := range questions(t) {
		text := q.Title() + "\n" + strings.Join(q.Lines(), "\n") + "\n"
		for _, c := range q.Choices() {
			text += "[" + c.Key + "] " + c.Label + "\n"
		}
		file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v; go test ./internal/extension/consent -update writes it", err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
		for _, line := range strings.Split(text, "\n") {
			if strings.ContainsAny(line, "\x1b\x07\u202e\r") {
				t.Errorf("%s: a terminal would obey %q", name, line)
			}
		}
	}
}

// A number that keeps an answer keeps the same one in every question, and the last choice of each keeps nothing (SPEC S-2).
func TestChoicesHaveOneNumbering(t *testing.T) {
	all := map[string]Question{"tool": {Tool: manifest.Tool{Name: "x"}}, "extension": {}, "documents": {DocsOnly: true}, "link": {Subject: Subject{Content: "link"}}}
	for name, q := range all {
		choices := q.Choices()
		if choices[0].Answer != Always || choices[1].Answer != Never || choices[len(choices)-1].Answer != "" {
			t.Errorf("%s: %+v", name, choices)
		}
		for i, c := range choices {
			if (c.Answer == Once) != (name == "tool" && i == 2) {
				t.Errorf("%s: %d is %q", name, i+1, c.Answer)
			}
		}
	}
	q := all["tool"]
	q.Source = "git https://user:s3cr3t@example.com/r"
	if text := strings.Join(q.Lines(), "\n"); strings.Contains(text, "s3cr3t") {
		t.Error(text)
	}
}
