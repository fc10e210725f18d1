package ask

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/permission"
)

func question(t *testing.T) consent.Question {
	t.Helper()
	host, err := permission.ParseHost("https://linter-rules.example.com")
	if err != nil {
		t.Fatal(err)
	}
	return consent.Question{
		Subject: consent.Subject{
			Extension: "code-analyzer", Source: "git https://example.com/code-analyzer.git", Version: "1.0.0", Content: "sha256:1",
			Permissions: permission.Permissions{Read: permission.Workspace, Hosts: []permission.Host{host}},
		},
		Tool: manifest.Tool{Name: "lintFile", Executable: "tools/lint.py", Runtime: "python"}, Workspace: "/home/u/project", By: "Gemini CLI", Tools: []string{"lintFile", "fixFile"},
	}
}

// SPEC §11.1: an agent's shell cannot give consent. An answer from elsewhere counts, even if an agent runs pollux.
func TestAgentsShell(t *testing.T) {
	subject := consent.Subject{Extension: "x", Source: "git a", Content: "sha256:1"}
	for _, test := range []struct {
		agent bool
		by    consent.Giver
		kept  bool
	}{
		{false, Typed(nil), true}, {true, Typed(nil), false},
		{false, consent.Answered(), true},
		{true, consent.Answered(), true}, // the bridge runs below the agent, and the person answers elsewhere
		{true, consent.Giver{}, false},
	} {
		t.Setenv("GEMINI_CLI", "")
		if test.agent {
			t.Setenv("GEMINI_CLI", "1")
		}
		s := consent.Open(t.TempDir())
		err := s.Grant(t.Context(), subject, consent.Always, test.by)
		if records, listErr := s.List(); (err == nil) != test.kept || (len(records) == 1) != test.kept || listErr != nil {
			t.Errorf("%+v: %v; kept %d", test, err, len(records))
		}
	}
	t.Setenv("GEMINI_CLI", "1")
	var out strings.Builder
	if answer, err := (&Terminal{In: strings.NewReader("a\n"), Out: &out}).Ask(t.Context(), question(t)); answer != "" || !errors.Is(err, consent.ErrAgent) || out.Len() > 0 {
		t.Errorf("an agent's terminal: %q, %v, %q", answer, err, out.String())
	}
}

// TestTerminal: a letter or a word is an answer; anything else is not.
func TestTerminal(t *testing.T) {
	q := question(t)
	for in, want := range map[string]consent.Answer{
		"o\n": consent.Once, "A\n": consent.Always, "n\n": consent.Never, " allow once \n": consent.Once, "never\n": consent.Never,
		"": "", "\n": "", "y\n": "", "yes\n": "", "oo\n": "", "o": consent.Once,
	} {
		var out bytes.Buffer
		got, err := (&Terminal{In: strings.NewReader(in), Out: &out}).Ask(t.Context(), q)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
		if !strings.Contains(out.String(), "linter-rules.example.com") || !strings.Contains(out.String(), "[a] Allow always for this content  [n] Never  [o] Allow once") {
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
func (b *backend) Sessions() []control.Session     { return nil }
func (b *backend) Context() *state.Snapshot        { return nil }
func (b *backend) Pause(bool)                      {}
func (b *backend) Lend(any, *state.Snapshot, bool) {}
func (b *backend) SetShare(_, _ string) error      { return nil }

func (b *backend) Ask(_ context.Context, q control.Question) (*string, error) {
	b.asked <- q
	return b.answer(q)
}

// TestEditor: the question reaches the folder's companion with its choices, and the answer comes back. Without a
// companion nobody can be asked.
func TestEditor(t *testing.T) {
	dir, err := os.MkdirTemp("", "px") // short, for the socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	q := question(t)
	editor := &Editor{Dirs: []string{dir}, Folder: "/home/u/project/sub"}
	if _, err := editor.Ask(t.Context(), q); !errors.Is(err, consent.ErrNobody) {
		t.Error(err)
	}
	b := &backend{roots: []string{"/home/u/project"}, asked: make(chan control.Question, 1)}
	server, err := control.Listen([]string{dir}, b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for i, want := range []consent.Answer{consent.Always, consent.Never, consent.Once, ""} {
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
	if got, err := First(editor, &Terminal{In: strings.NewReader("o\n"), Out: io.Discard}).Ask(t.Context(), q); err != nil || got != consent.Once {
		t.Errorf("the next one is not asked: %q, %v", got, err)
	}
	<-b.asked
	if _, err := First(editor).Ask(t.Context(), q); !errors.Is(err, consent.ErrNobody) || !strings.Contains(err.Error(), "no editor page is open") {
		t.Error(err)
	}
}
