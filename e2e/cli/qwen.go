package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// qwenSettings keep every question away that has nothing to do with an editor, and ask before each change.
const qwenSettings = `{
  "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
  "tools": {"approvalMode": "default", "useRipgrep": false},
  "ide": {"enabled": true, "hasSeenNudge": true},
  "general": {"disableAutoUpdate": true, "disableUpdateNag": true, "enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "ui": {"hideTips": true, "hideBanner": true, "enableFollowupSuggestions": false}
}`

// Qwen prepares the home for Qwen Code, with IDE mode on. Settings that are there already stay.
func (h Home) Qwen(t testing.TB) {
	t.Helper()
	file := filepath.Join(h.Dir, ".qwen", "settings.json")
	if _, err := os.Stat(file); err == nil {
		return
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(qwenSettings), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// StartQwen runs Qwen Code in dir until its prompt stands there.
func StartQwen(t testing.TB, h Home, dir string, env ...string) *Session {
	t.Helper()
	h.Qwen(t)
	m := model.Start(t)
	s := Attach(t, m, terminal.Start(t, terminal.Options{
		Dir: dir, Env: h.Env(append(qwenVariables(m), env...)...), Args: peers.Command(t, peers.Qwen),
	}))
	s.Ready()
	return s
}

// qwenVariables are what Qwen Code needs to ask the scripted model, and to find a companion on this machine, also inside a
// container.
func qwenVariables(m *model.Server) []string {
	return []string{
		"OPENAI_API_KEY=anything", "OPENAI_BASE_URL=" + m.URL() + "/v1", "OPENAI_MODEL=scripted",
		"QWEN_CODE_NO_RELAUNCH=1", "SSH_CONNECTION=127.0.0.1 1 127.0.0.1 2", "NO_COLOR=1",
	}
}
