package qwen

import (
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// SPEC Q-1: QWEN_HOME outranks the home folder; without either there is no folder, and no guess.
func TestHome(t *testing.T) {
	t.Parallel()
	home, other := t.TempDir(), t.TempDir()
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{settingsfile.HomeVariable: home}, filepath.Join(home, ".qwen")},
		{map[string]string{settingsfile.HomeVariable: home, homeVariable: other}, other},
		{map[string]string{homeVariable: other}, other},
		{nil, ""},
	} {
		getenv := func(name string) string { return tt.env[name] }
		got, err := folder(getenv)
		if (err != nil) != (tt.want == "") || err == nil && got != tt.want {
			t.Errorf("%v: %q, %v, want %q", tt.env, got, err, tt.want)
		}
		if path, err := SettingsPath(getenv); err == nil && path != filepath.Join(tt.want, "settings.json") {
			t.Errorf("%v: the settings are %q", tt.env, path)
		}
	}
}
