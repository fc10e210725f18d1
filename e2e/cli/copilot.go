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

// StartCopilot runs GitHub Copilot CLI in dir until its prompt stands there, without its service.
func StartCopilot(t testing.TB, h Home, dir string, env ...string) *Agent {
	t.Helper()
	config, err := json.Marshal(map[string]any{"trustedFolders": []string{dir}, "banner": "never"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.Dir, ".copilot", "config.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	m := model.Start(t)
	variables := []string{
		"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL=" + m.URL() + "/v1", "COPILOT_PROVIDER_API_KEY=anything", "COPILOT_MODEL=scripted",
		"COPILOT_AUTO_UPDATE=false", "NO_COLOR=1",
	}
	c := startAgent(t, m, dir, "❯", "esc cancel", h.Env(append(variables, env...)...), peers.Command(t, peers.Copilot))
	c.Until("Copilot CLI's prompt", startTimeout, func(screen string) bool { return strings.Contains(screen, "❯") })
	return c
}
