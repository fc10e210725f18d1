package clisettings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SPEC P-3: each setting by which the CLI does not start a server is found, with its file; the others block nothing.
func TestServersBlocks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		user, workspace, enablement string
		want                        string // settings, joined
	}{
		"nothing":              {},
		"another is excluded":  {user: `{"mcp": {"excluded": ["other"]}} // comment`},
		"excluded":             {user: `{"mcp": {"excluded": ["other", "Server-1 "]}}`, want: "mcp.excluded"},
		"not on the list":      {user: `{"mcp": {"allowed": ["other"]}}`, want: "mcp.allowed"},
		"on the list":          {user: `{"mcp": {"allowed": ["server-1"]}}`},
		"an empty list":        {user: `{"mcp": {"allowed": []}}`},
		"on one list of two":   {user: `{"mcp": {"allowed": ["server-1"]}}`, workspace: `{"mcp": {"allowed": ["x"]}}`, want: "mcp.allowed"},
		"the workspace's word": {workspace: `{"mcp": {"excluded": ["server-1"]}}`, want: "mcp.excluded"},
		"off":                  {user: `{"admin": {"mcp": {"enabled": false}}}`, want: "admin.mcp.enabled"},
		"on":                   {user: `{"admin": {"mcp": {"enabled": true}}}`},
		"not the admin's":      {user: `{"admin": {"mcp": {"config": {"other": {}}}}}`, want: "admin.mcp.config"},
		"the admin's":          {user: `{"admin": {"mcp": {"config": {"server-1": {}}}}}`},
		"disabled":             {enablement: `{"server-1": {"enabled": false}}`, want: "enabled"},
		"enabled again":        {enablement: `{"server-1": {"enabled": true}, "x": {"enabled": false}}`},
		"a broken state":       {enablement: `{`},
		"two at once":          {user: `{"mcp": {"excluded": ["server-1"], "allowed": ["x"]}}`, want: "mcp.allowed mcp.excluded"},
	} {
		home, ws := t.TempDir(), t.TempDir()
		for file, text := range map[string]string{
			filepath.Join(home, ".gemini", "settings.json"): test.user, filepath.Join(ws, ".gemini", "settings.json"): test.workspace,
			filepath.Join(home, ".gemini", "mcp-server-enablement.json"): test.enablement,
		} {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if text != "" {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := ReadServers(func(string) string { return "" }, filepath.Join(home, ".gemini", "settings.json"), ws)
		var got []string
		for _, b := range s.Blocks("server-1") {
			got = append(got, b.Setting)
			if _, err := os.Stat(b.File); err != nil {
				t.Errorf("%s: the file: %v", name, err)
			}
		}
		if strings.Join(got, " ") != test.want || len(s.Broken) > 0 {
			t.Errorf("%s: %v, want %q; broken: %v", name, got, test.want, s.Broken)
		}
	}
}

// A server of the settings' own is found with its file; a broken file is named and hides no other.
func TestServersDefined(t *testing.T) {
	t.Parallel()
	home, ws := t.TempDir(), t.TempDir()
	user, own := filepath.Join(home, ".gemini", "settings.json"), filepath.Join(ws, ".gemini", "settings.json")
	for file, text := range map[string]string{user: "{", own: `{"mcpServers": {"b": {}, "a": null}}`} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := ReadServers(func(string) string { return "" }, user, ws)
	if len(s.Defined) != 2 || s.Defined[0] != (Named{"a", own}) || len(s.Broken) != 1 || !strings.Contains(s.Broken[0].Error(), user) {
		t.Errorf("%+v", s)
	}
	if s := ReadServers(func(string) string { return "" }, user, ""); len(s.Defined) > 0 {
		t.Errorf("a workspace that does not count: %+v", s)
	}
}
