package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// claudeKey is good enough for a scripted model; its end is what the settings name.
const claudeKey = "sk-ant-api03-nothing-but-a-scripted-model-asks-for-it"

// A Claude is one running Claude Code. It is for one goroutine at a time.
type Claude struct {
	*terminal.Terminal
	Model *model.Server
	t     testing.TB
}

// StartClaude runs Claude Code in dir until its prompt stands there. Every question that has nothing to do with an editor is
// answered beforehand.
func StartClaude(t testing.TB, h Home, dir string, env ...string) *Claude {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	state, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5, "bypassPermissionsModeAccepted": true,
		"customApiKeyResponses": map[string]any{"approved": []string{claudeKey[len(claudeKey)-20:]}, "rejected": []string{}},
		"projects":              map[string]any{real: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "projectOnboardingSeenCount": 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		filepath.Join(h.Dir, ".claude.json"):             string(state),
		filepath.Join(h.Dir, ".claude", "settings.json"): `{"permissions": {"defaultMode": "default", "disableAutoMode": "disable", "allow": ["Bash"]}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); err == nil {
			continue // of the Claude Code before
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := model.Start(t)
	variables := []string{
		"ANTHROPIC_BASE_URL=" + m.URL(), "ANTHROPIC_API_KEY=" + claudeKey, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_IDE_SKIP_AUTO_INSTALL=1", "NO_COLOR=1",
	}
	c := &Claude{Model: m, t: t, Terminal: terminal.Start(t, terminal.Options{
		Dir: dir, Env: h.Env(append(variables, env...)...), Args: peers.Command(t, peers.Claude),
	})}
	asked := false
	c.Until("Claude Code's prompt", startTimeout, func(screen string) bool {
		if strings.Contains(screen, "keep manual mode") {
			if !asked {
				asked = true
				c.Keys("Down", "Enter")
			}
			return false
		}
		return strings.Contains(screen, "❯")
	})
	return c
}

// Ask types a prompt and returns the model's request that carries it.
func (c *Claude) Ask(prompt string, turns ...model.Turn) *model.Request {
	c.t.Helper()
	c.Until("an end of the work", waitTimeout, func(screen string) bool {
		return strings.Contains(screen, "❯") && !strings.Contains(screen, "esc to interrupt")
	})
	c.Model.Script(prompt, turns...)
	n := len(c.Model.Requests())
	fits := func(r *model.Request) bool { return r.Prompt() == prompt }
	c.Type(prompt)
	pressed := time.Time{}
	c.Until("the model is asked "+prompt, waitTimeout, func(screen string) bool {
		for _, r := range c.Model.Requests()[n:] {
			if fits(r) {
				return true
			}
		}
		if strings.Contains(screen, prompt) && time.Since(pressed) > 2*time.Second {
			c.Keys("Enter")
			pressed = time.Now()
		}
		return false
	})
	return c.Model.Wait(c.t, n, waitTimeout, fits)
}

// Answer waits for a question with that answer chosen, and gives it. A key that comes too early is swallowed, so it is pressed until
// the question has gone.
func (c *Claude) Answer(choice string) {
	c.t.Helper()
	c.Wait(choice, waitTimeout)
	pressed := time.Time{}
	c.Until("an end of the question", waitTimeout, func(screen string) bool {
		if strings.Contains(screen, choice) && time.Since(pressed) > 2*time.Second {
			c.Keys("Enter")
			pressed = time.Now()
		}
		return !strings.Contains(screen, choice)
	})
}
