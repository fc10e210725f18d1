package extensions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
)

// patience is how long a session may take for what must happen.
const patience = 60 * time.Second

// slow writes an extension whose tool counts in a file of the workspace until it is ended.
func (h *house) slow(dir string) string {
	h.t.Helper()
	write(h.t, filepath.Join(dir, "gemini-extension.json"), `{"name":"slow","version":"1.0.0","description":"Takes its time.",
		"permissions":{"filesystem":{"read":"workspace","write":"workspace"}},
		"tools":[{"name":"count","description":"Counts.","executable":"tools/count.sh","runtime":"shell"}]}`)
	write(h.t, filepath.Join(dir, "tools", "count.sh"), "i=0\nwhile [ $i -lt 3000 ]; do i=$((i+1)); echo $i > beat; sleep 0.1; done\n")
	return dir
}

// allowed asks, and lets the CLI call the tool that the model's turn calls.
func allowed(t *testing.T, s *cli.Session, prompt string, turn model.Turn) {
	t.Helper()
	s.Ask(prompt, turn)
	s.Wait("Allow execution of MCP tool", patience)
	pressed := time.Time{}
	s.Until("an end of the question", patience, func(screen string) bool {
		if !strings.Contains(screen, "Allow execution of MCP tool") {
			return true
		}
		if time.Since(pressed) > 2*time.Second {
			s.Keys("Enter") // allow once
			pressed = time.Now()
		}
		return false
	})
}

// poll waits for what another process does.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

// The whole of a session at a terminal (SPEC P-1, P-3, P-4, S-2): the summary, a call with its result, an extension that is
// installed meanwhile, a call that is cancelled, one that is not allowed any more, and what is left after /compress.
func TestSession(t *testing.T) {
	h := bridged(t)
	s := cli.Start(t, h.home, h.ws)
	first := s.Ask("first")
	if text := everything(t, first); !strings.Contains(text, "mcp_pollux-tester_lintFile(file: string)") || strings.Contains(text, "Lines over 120 characters") || strings.Contains(text, "import argparse") {
		t.Errorf("the first prompt: %.3000s", text)
	}

	// The tools may come a moment after the first prompt: the CLI does not wait for servers.
	for i := 0; !declared(s.Ask(fmt.Sprintf("ready %d", i)), "mcp_pollux-tester_lintFile"); i++ {
		if i == 10 {
			t.Fatal("the tools are never declared")
		}
	}
	n := len(s.Model.Requests())
	allowed(t, s, "lint it", call("mcp_pollux-tester_lintFile", map[string]any{"file": "src/index.js"}))
	if got := result(t, s.Model, n, "mcp_pollux-tester_lintFile"); !strings.Contains(got, `"rule": "no-var"`) {
		t.Errorf("the result: %s", got)
	}

	h.us("install", h.slow(t.TempDir()), "--yes")
	h.us("consent", "grant", "slow", "--yes")
	for i := 0; !declared(s.Ask(fmt.Sprintf("now %d", i)), "mcp_pollux-tester_count"); i++ {
		if i == 10 {
			t.Fatal("the tool of an extension that was installed in the session is never declared")
		}
	}

	beat := filepath.Join(h.ws, "beat")
	allowed(t, s, "count please", call("mcp_pollux-tester_count", map[string]any{}))
	poll(t, "the tool's first beat", func() bool { _, err := os.Stat(beat); return err == nil })
	s.Keys("Escape")
	s.Wait("Request cancelled", patience)
	n = len(s.Model.Requests())
	s.Ask("read it", call("read_mcp_resource", map[string]any{"uri": "ext://code-analyzer/docs/linter-rules"}))
	if got := result(t, s.Model, n, "read_mcp_resource"); !strings.Contains(got, "Lines over 120 characters") {
		t.Errorf("after the cancelled call: %s", got)
	}

	script := filepath.Join(h.home.Dir, ".gemini", "extensions", "code-analyzer", "tools", "lint.py")
	write(t, script, "print('{\"changed\": true}')\n")
	n = len(s.Model.Requests())
	allowed(t, s, "lint it again", call("mcp_pollux-tester_lintFile", map[string]any{"file": "src/index.js"}))
	if got := result(t, s.Model, n, "mcp_pollux-tester_lintFile"); strings.Contains(got, "changed\\\": true") || !strings.Contains(got, "pollux extensions consent grant code-analyzer") {
		t.Errorf("a tool whose content changed since the user agreed: %s", got)
	}
	h.us("consent", "grant", "code-analyzer", "--yes") // it is the test's own change

	s.Model.Report(300_000) // or the CLI finds nothing to compress
	s.Ask("a long story")
	s.Idle()
	s.Command("/compress", "Chat history compressed from")
	s.Idle()
	if text := everything(t, s.Ask("after")); !strings.Contains(text, "mcp_pollux-tester_lintFile(file: string)") || !strings.Contains(text, "**slow**: Takes its time.") {
		t.Errorf("after /compress: %.3000s", text)
	}

	// The CLI tells nobody of a call that its user cancelled (it only stops waiting), so the tool may still
	// count. It must not when the CLI has gone, by whatever end.
	gemini, err := os.FindProcess(s.PID())
	must(t, err)
	must(t, gemini.Kill())
	poll(t, "the tool's last beat", func() bool { // whether the server still had time to log the end is open
		before, err := os.ReadFile(beat)
		must(t, err)
		time.Sleep(3 * time.Second)
		after, err := os.ReadFile(beat)
		must(t, err)
		return string(before) == string(after)
	})
}

// SPEC P-3 at a terminal: the context file of the bridge is the summary of the session's own folder (its name holds the
// CLI's variable for that), in the first request and once, in two folders side by side.
func TestSessionsOfWorkspaces(t *testing.T) {
	h := bridged(t)
	h.us("install", h.slow(t.TempDir()), "--yes")
	h.us("consent", "grant", "slow", "--yes")
	h.us("disable", "slow")
	h.us("enable", "slow", "--scope", "workspace")
	h.us("disable", "code-analyzer", "--scope", "workspace")
	const own, off, other = "**slow**: Takes its time.", "Switched off in this workspace, with all functions and docs: code-analyzer.", "mcp_pollux-tester_lintFile(file: string)"
	context := func(dir string) string {
		t.Helper()
		_, context, _ := strings.Cut(everything(t, cli.Start(t, h.home, dir).Ask("first")), `\u003cextension_context`)
		context, _, _ = strings.Cut(context, `\u003c/extension_context`)
		return context
	}
	if text := context(h.ws); strings.Count(text, own) != 1 || strings.Count(text, off) != 1 {
		t.Errorf("in the workspace: %.4000s", text)
	}
	if text := context(t.TempDir()); strings.Contains(text, "slow") || strings.Contains(text, off) || strings.Count(text, other) != 1 {
		t.Errorf("elsewhere: %.4000s", text)
	}
}
