package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// claudeKey is good enough for a scripted model; its end is what the settings name.
const claudeKey = "sk-ant-api03-nothing-but-a-scripted-model-asks-for-it"

// StartClaude runs Claude Code in dir until its prompt stands there. Every question that has nothing to do with an editor is
// answered beforehand. CLAUDE_CONFIG_DIR in env moves its settings.
func StartClaude(t testing.TB, h Home, dir string, env ...string) *Agent {
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
	config, stateDir := filepath.Join(h.Dir, ".claude"), h.Dir
	for _, variable := range env {
		if own, ok := strings.CutPrefix(variable, "CLAUDE_CONFIG_DIR="); ok {
			config, stateDir = own, own
		}
	}
	for file, content := range map[string]string{
		filepath.Join(stateDir, ".claude.json"): string(state),
		filepath.Join(config, "settings.json"):  `{"permissions": {"defaultMode": "default", "disableAutoMode": "disable", "allow": ["Bash"]}}`,
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
	c := startAgent(t, m, dir, "❯", "esc to interrupt", h.Env(append(variables, env...)...), peers.Command(t, peers.Claude))
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
