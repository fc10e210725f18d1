//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/cli/console"
)

// SPEC K-4, Q-8: in a terminal, setup offers the relay by a question, once for each agent that could use it and does not. Scripts are
// asked nothing.
func TestSetupOffersTheRelay(t *testing.T) {
	const question, starts = "[y/N]: ", "that finds no editor of its own starts pollux relay"
	for answer, want := range map[string]bool{"\n": false, "n\n": false, "\x04": false, "y\n": true} {
		w := newWorld(t)
		shown, code := dialogue(t, w, []string{"setup", "gemini"}, [2]string{question, answer})
		if code != console.CodeDone || !strings.Contains(shown, "Gemini CLI") || strings.Contains(shown, starts) != want {
			t.Errorf("%q: exit code %d\n%s", answer, code, shown)
		}
		if !want {
			continue
		}
		if shown, code := dialogue(t, w, []string{"setup", "gemini"}); code != console.CodeDone || strings.Contains(shown, question) {
			t.Errorf("again: exit code %d\n%s", code, shown)
		}
	}
	w := newWorld(t)
	for _, args := range [][]string{{"setup", "gemini", "--dry-run"}, {"setup", "gemini", "--json"}, {"setup", "gemini", "--only", "ide"}, {"setup", "gemini", "--no-relay"}, {"setup", "claude"}} {
		if shown, code := dialogue(t, w, args); code != console.CodeDone || strings.Contains(shown, question) {
			t.Errorf("%v: exit code %d\n%s", args, code, shown)
		}
	}
	if shown, code := w.in(w.project, nil, "setup", "gemini"); code != console.CodeDone || strings.Contains(shown, question) {
		t.Errorf("without a terminal: exit code %d\n%s", code, shown)
	}
}
