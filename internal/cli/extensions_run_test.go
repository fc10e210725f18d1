//go:build linux

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// toolWorld has an extension "x" with a tool "t" that prints "ran".
func toolWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.env = append(w.env, "GEMINI_CLI=", "GEMINI_CLI_HOME=", "GEMINI_FORCE_FILE_STORAGE=true", "NO_COLOR=1")
	dir := filepath.Join(w.root, ".gemini", "extensions", "x")
	writeExtension(t, dir, `{"name":"x","version":"1.0.0","permissions":{"filesystem":{"read":"workspace"},"network":{"allowedHosts":["http://localhost:8080"]}},
		"tools":[{"name":"t","description":"d","executable":"t.sh","runtime":"shell"}]}`)
	if err := os.WriteFile(filepath.Join(dir, "t.sh"), []byte("echo ran; exit 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRunAsksInTheTerminal: a question in words, answered with one key; any other key runs nothing (SPEC S-2).
func TestRunAsksInTheTerminal(t *testing.T) {
	const prompt = "Enter: not now: "
	for answer, test := range map[string]struct {
		code    int
		runs    bool
		state   string
		noAsker bool // the next run does not ask
	}{
		"o\n":    {code: 3, runs: true, state: "nothing was answered yet"},
		"a\n":    {code: 3, runs: true, state: "x 1.0.0: allowed on", noAsker: true},
		"n\n":    {code: console.CodeNo, state: "x 1.0.0: refused for good", noAsker: true},
		"\n":     {code: console.CodeNo, state: "nothing was answered yet"},
		"yes\n":  {code: console.CodeNo, state: "nothing was answered yet"},
		"\x04":   {code: console.CodeNo, state: "nothing was answered yet"},
		"\x03":   {code: console.CodeCancelled, state: "nothing was answered yet"},
		"once\n": {code: 3, runs: true, state: "nothing was answered yet"},
	} {
		t.Run(strings.Trim(answer, "\n"), func(t *testing.T) {
			t.Parallel()
			w := toolWorld(t)
			shown, code := dialogue(t, w, []string{"ext", "run", "x", "t"}, [2]string{prompt, answer})
			if code != test.code || strings.Contains(shown, "ran\r\n") != test.runs {
				t.Errorf("exit code %d, want %d\n%s", code, test.code, shown)
			}
			for _, part := range []string{`May the tool "t" of the extension "x" run?`, "x 1.0.0", "may read the files of the workspace", "programs that run on this computer", "localhost", w.project} {
				if !strings.Contains(shown, part) {
					t.Errorf("the question does not say %q:\n%s", part, shown)
				}
			}
			if state, _ := dialogue(t, w, []string{"ext", "consent", "list"}); !strings.Contains(state, test.state) {
				t.Errorf("kept: %s", state)
			}
			if test.noAsker {
				if shown, code := dialogue(t, w, []string{"ext", "run", "x", "t"}); strings.Contains(shown, prompt) || code != test.code {
					t.Errorf("exit code %d\n%s", code, shown)
				}
			}
		})
	}
}

// TestAnswerReachesTheBridge: an extension allowed for good is in the next session's summary.
func TestAnswerReachesTheBridge(t *testing.T) {
	t.Parallel()
	w := toolWorld(t)
	if out, err := w.command("ext", "bridge", "install").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, answer := range []string{"o\n", "a\n"} {
		if shown, code := dialogue(t, w, []string{"ext", "call", "t()"}, [2]string{"Enter: not now: ", answer}); code != console.CodeNo {
			t.Errorf("%q: exit code %d\n%s", answer, code, shown)
		}
		data, err := os.ReadFile(filepath.Join(w.root, ".gemini", "extensions", "pollux", "SUMMARY.md"))
		if err != nil || strings.Contains(string(data), "_t()") != (answer == "a\n") {
			t.Errorf("%q: %v\n%s", answer, err, data)
		}
	}
}

// TestRunAsksInTheEditor: without a terminal of the user, the editor that serves the folder asks. The same holds for
// a model's terminal, where nobody could tell who types.
func TestRunAsksInTheEditor(t *testing.T) {
	w := toolWorld(t)
	l := w.serve()
	var mu sync.Mutex // guards the two fields, which the page's connection also uses
	var asked []string
	answer := ""
	set := func(text string) { mu.Lock(); defer mu.Unlock(); answer, asked = text, nil }
	questions := func() []string { mu.Lock(); defer mu.Unlock(); return asked }
	origin, token := webtest.Login(t, l.Page)
	page := webtest.Connect(t, origin, token)
	page.OnAsk(func(title, message string, choices []string) *string {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, title+"\n"+message)
		for _, c := range choices {
			if strings.HasPrefix(c, answer) && answer != "" {
				return &c
			}
		}
		return nil
	})
	var hello any
	page.Call("hello", map[string]any{"clientId": "test"}, &hello)
	run := func() (string, int) {
		t.Helper()
		cmd := w.command("ext", "run", "x", "t")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		return out.String(), cmd.ProcessState.ExitCode()
	}
	for _, test := range []struct {
		answer string
		code   int
		asked  int
	}{{"", console.CodeNo, 1}, {"Allow once", 3, 1}, {"Allow always", 3, 1}, {"", 3, 0}} {
		set(test.answer)
		out, code := run()
		asked := questions()
		if code != test.code || len(asked) != test.asked {
			t.Errorf("%q: exit code %d, want %d; asked %q\n%s", test.answer, code, test.code, asked, out)
		}
		if len(asked) > 0 && (!strings.Contains(asked[0], "may read the files of the workspace") || !strings.Contains(out, "asked in your editor")) {
			t.Errorf("%q\n%s", asked[0], out)
		}
	}
	if out, code := dialogue(t, w, []string{"ext", "consent", "revoke", "x"}); code != console.CodeDone {
		t.Fatal(out)
	}
	// A model's terminal never gets the question; the editor does.
	w.env = append(w.env, "GEMINI_CLI=1")
	set("Never")
	out, code := dialogue(t, w, []string{"ext", "run", "x", "t"})
	if code != console.CodeNo || len(questions()) != 1 || strings.Contains(out, "not now") {
		t.Errorf("exit code %d, asked %q\n%s", code, questions(), out)
	}
	page.Leave()
}

// TestConsentFromAgent: every descendant of a connected CLI is a model's shell, even if it hides its mark; it cannot
// answer anything (SPEC §11.1).
func TestConsentFromAgent(t *testing.T) {
	w := toolWorld(t)
	l := w.serve()
	agent.Connect(t, l.DiscoveryFile) // this process is now a CLI, and starts the commands
	eventually(t, "the companion knows the CLI's process", func() bool {
		return control.InAgent(t.Context(), []string{filepath.Join(w.root, "r", "pollux")})
	})
	for _, args := range [][]string{{"consent", "grant", "x", "--yes"}, {"consent", "revoke", "--all"}, {"run", "x", "t", "--yes"}, {"run", "x", "t", "--unsafe-no-sandbox"}} {
		out, err := w.command(append([]string{"ext"}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "agent's shell") {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	elsewhere := w.command("ext", "consent", "grant", "x", "--yes") // it does not look where the companion's socket is
	elsewhere.Env = append(slices.Clip(elsewhere.Env), "XDG_RUNTIME_DIR="+filepath.Join(w.root, "nowhere"))
	if out, err := elsewhere.CombinedOutput(); err == nil || !strings.Contains(string(out), "agent's shell") {
		t.Errorf("with another XDG_RUNTIME_DIR: %v %s", err, out)
	}
	if out, code := dialogue(t, w, []string{"ext", "run", "x", "t"}); code != console.CodeNo || strings.Contains(out, "not now") || !strings.Contains(out, "no editor page is open") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
