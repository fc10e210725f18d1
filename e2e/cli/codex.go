package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// StartCodex runs Codex in dir until its prompt stands there. Its model's shell asks nothing, and is in no sandbox.
// With daemon, it has its background server, as when a user starts it.
func StartCodex(t testing.TB, h Home, dir string, daemon bool, env ...string) *Agent {
	t.Helper()
	m := model.Start(t)
	config := fmt.Sprintf(`model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
sandbox_mode = "danger-full-access"
approval_policy = "never"
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[projects."%s"]
trust_level = "trusted"
`, m.URL(), dir)
	file := filepath.Join(h.Dir, ".codex", "config.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := peers.Command(t, peers.Codex)
	if !daemon {
		command = append(command, "--no-daemon")
	}
	c := startAgent(t, m, dir, "› ", "esc to interrupt", h.Env(append([]string{"SCRIPTED_KEY=anything"}, env...)...), command)
	c.Until("Codex's prompt", startTimeout, func(screen string) bool { return strings.Contains(screen, "› ") })
	return c
}

// IDE has Codex use the context of editors. What comes too early is swallowed, so it is typed again.
func (c *Agent) IDE() {
	c.t.Helper()
	const on = "IDE context is on"
	typed, pressed := time.Now(), time.Time{}
	c.Type("/ide")
	c.Until(on, waitTimeout, func(screen string) bool {
		switch {
		case strings.Contains(screen, on):
			return true
		case time.Since(typed) > 15*time.Second:
			c.Keys("C-c") // empties the line
			c.Type("/ide")
			typed = time.Now()
		case strings.Contains(screen, "› /ide") && time.Since(pressed) > time.Second:
			c.Keys("Enter")
			pressed = time.Now()
		}
		return false
	})
}
