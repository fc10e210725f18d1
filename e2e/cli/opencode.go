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

// OpenCode prepares the home for opencode and names its variables: nothing is fetched, and a scripted model answers.
func (h Home) OpenCode(t testing.TB, m *model.Server) []string {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": false, "share": "disabled",
		"provider": map[string]any{"scripted": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "scripted", "options": map[string]any{"baseURL": m.URL() + "/v1", "apiKey": "anything"},
			"models": map[string]any{"scripted": map[string]any{"name": "scripted", "tool_call": true}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.Dir, ".config", "opencode", "opencode.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "NO_COLOR=1"}
}

// StartOpenCode runs a command that runs opencode, in dir, until its prompt stands there; nil is opencode itself.
func StartOpenCode(t testing.TB, h Home, dir string, command []string, env ...string) *Agent {
	t.Helper()
	m := model.Start(t)
	env = append(h.OpenCode(t, m), env...)
	if command == nil {
		command = peers.Command(t, peers.OpenCode)
	}
	c := startAgent(t, m, dir, "ctrl+p commands", "esc interrupt", h.Env(env...), command)
	c.Until("opencode's prompt", startTimeout, func(screen string) bool { return strings.Contains(screen, "ctrl+p commands") })
	return c
}
