package runner

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pollux-companion/pollux/internal/permission"
)

// An explanation never asks the keychain, which could ask the user; a run does.
func TestExplainAsksNoKeychain(t *testing.T) {
	w := newWorld(t)
	w.extension("x", "shell", "true", permission.Permissions{}, map[string]any{"settings": []any{map[string]any{"name": "Key", "envVar": "X_KEY", "sensitive": true}}})
	w.allow("x")
	marker := filepath.Join(w.root, "asked")
	tool := w.file("bin/secret-tool", "#!/bin/sh\n: >"+marker+"\nexit 1\n")
	if err := os.Chmod(tool, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(tool)+":"+os.Getenv("PATH"))
	t.Setenv("GEMINI_FORCE_FILE_STORAGE", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	e, err := New(w.options).Explain(w.request("x", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(e.Plan.Environment, "X_KEY") {
		t.Errorf("the tool knows %q", e.Plan.Environment)
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the keychain was asked")
	}
	_, _ = w.run("x", "{}")
	if _, err := os.Lstat(marker); err != nil {
		t.Error("a run does not ask this keychain, so that the test proves nothing")
	}
}
