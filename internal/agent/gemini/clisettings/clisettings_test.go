package clisettings

import (
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// GEMINI_CLI_HOME outranks the home folder; without either there is no path.
func TestPath(t *testing.T) {
	t.Parallel()
	home, other := t.TempDir(), t.TempDir()
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{settingsfile.HomeVariable: home}, home},
		{map[string]string{settingsfile.HomeVariable: home, "GEMINI_CLI_HOME": other}, other},
		{map[string]string{"GEMINI_CLI_HOME": other}, other},
		{nil, ""},
	} {
		path, err := PathIn(func(name string) string { return tt.env[name] })
		if tt.want == "" && err == nil || tt.want != "" && path != filepath.Join(tt.want, ".gemini", "settings.json") {
			t.Errorf("%v: %s, %v", tt.env, path, err)
		}
	}
}
