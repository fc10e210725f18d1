package consent

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func questions(t testing.TB) map[string]Question {
	lint := manifest.Tool{Name: "lintFile", Executable: "tools/lint.py", Runtime: "python", Args: []manifest.Arg{{Name: "file", Type: "string"}}}
	base := Subject{Extension: "code-analyzer", Source: "git https://example.com/code-analyzer.git", Version: "1.0.0", Commit: "0123456789abcdef0123", Content: "sha256:1"}
	at := func(p manifest.Permissions) Subject {
		s := base
		s.Permissions = p
		return s
	}
	nothing := at(manifest.Permissions{})
	analyzer := at(permissions(t, manifest.Workspace, 0, "https://linter-rules.example.com"))
	local := at(permissions(t, manifest.None, manifest.Workspace, "http://localhost:8080", "http://192.168.1.9", "api.example.com"))
	onlyLocal := at(permissions(t, 0, 0, "http://127.0.0.1:5432"))
	all := at(permissions(t, manifest.Full, manifest.Full, "*.example.com"))
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

// TestTerminal: a letter or a word is an answer, and anything else is none.
func TestTerminal(t *testing.T) {
	q := questions(t)["analyzer"]
	for in, want := range map[string]Answer{
		"o\n": Once, "A\n": Always, "n\n": Never, " allow once \n": Once, "never\n": Never,
		"": "", "\n": "", "y\n": "", "yes\n": "", "oo\n": "", "o": Once,
	} {
		var out bytes.Buffer
		got, err := (&Terminal{In: strings.NewReader(in), Out: &out}).Ask(t.Context(), q)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
		if !strings.Contains(out.String(), "linter-rules.example.com") || !strings.Contains(out.String(), "[o] Allow once  [a] Allow always for this content  [n] Never") {
			t.Errorf("%q", out.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, w := io.Pipe()
	defer w.Close()
	if _, err := (&Terminal{In: r, Out: io.Discard}).Ask(ctx, q); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A backend is a companion that answers questions.
type backend struct {
	control.Backend
	roots  []string
	asked  chan control.Question
	answer func(control.Question) (*string, error)
}

func (b *backend) Status() control.Status {
	return control.Status{PID: os.Getpid(), Roots: b.roots, Started: time.Now()}
}
func (b *backend) Sessions() []control.Session { return nil }
func (b *backend) Context() *state.Snapshot    { return nil }

func (b *backend) Ask(_ context.Context, q control.Question) (*string, error) {
	b.asked <- q
	return b.answer(q)
}

// TestEditor: the question reaches the companion of the folder, with its
// choices, and its answer comes back; without one, nobody can be asked.
func TestEditor(t *testing.T) {
	dir, err := os.MkdirTemp("", "px") // short, for the socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	q := questions(t)["analyzer"]
	editor := &Editor{Dirs: []string{dir}, Folder: "/home/u/project/sub"}
	if _, err := editor.Ask(t.Context(), q); !errors.Is(err, ErrNobody) {
		t.Error(err)
	}
	b := &backend{roots: []string{"/home/u/project"}, asked: make(chan control.Question, 1)}
	server, err := control.Listen([]string{dir}, b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for i, want := range []Answer{Once, Always, Never, ""} {
		b.answer = func(q control.Question) (*string, error) { return &q.Choices[i], nil }
		got, err := editor.Ask(t.Context(), q)
		if err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		asked := <-b.asked
		if asked.Title != q.Title() || asked.Message != strings.Join(q.Lines(), "\n") || len(asked.Choices) != 4 {
			t.Errorf("%+v", asked)
		}
	}
	for name, answer := range map[string]func(control.Question) (*string, error){
		"sent away": func(control.Question) (*string, error) { return nil, nil },
		"invented":  func(control.Question) (*string, error) { word := "Yes, everything"; return &word, nil },
	} {
		b.answer = answer
		if got, err := editor.Ask(t.Context(), q); err != nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		<-b.asked
	}
	b.answer = func(control.Question) (*string, error) { return nil, errors.New("no editor page is open") }
	if got, err := First(editor, &Terminal{In: strings.NewReader("o\n"), Out: io.Discard}).Ask(t.Context(), q); err != nil || got != Once {
		t.Errorf("the next one is not asked: %q, %v", got, err)
	}
	<-b.asked
	if _, err := First(editor).Ask(t.Context(), q); !errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "no editor page is open") {
		t.Error(err)
	}
}
