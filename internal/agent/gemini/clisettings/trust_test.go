package clisettings

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// What the CLI trusts: its variables first, then whether it asks at all, then the longest rule that holds the folder.
func TestTrustOf(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "w", "app")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(base, filepath.FromSlash(path)) }
	const asksNot = `{"security":{"folderTrust":{"enabled":false}}} // comment`
	for name, test := range map[string]struct {
		user, system string
		rules        map[string]string // by path below base
		env          map[string]string
		want         Trust
		fails        bool
	}{
		"nothing said":       {want: Undecided},
		"this folder":        {rules: map[string]string{"w/app": "TRUST_FOLDER"}, want: Trusted},
		"one above":          {rules: map[string]string{"w": "TRUST_FOLDER"}, want: Trusted},
		"another":            {rules: map[string]string{"w/app2": "TRUST_FOLDER"}, want: Undecided},
		"one below":          {rules: map[string]string{"w/app/x": "TRUST_FOLDER"}, want: Undecided},
		"a folder beside it": {rules: map[string]string{"w/other": "TRUST_PARENT"}, want: Trusted},
		"the longest":        {rules: map[string]string{"w": "TRUST_FOLDER", "w/app": "DO_NOT_TRUST"}, want: Distrusted},
		"it does not ask":    {user: asksNot, want: Trusted},
		"it asks all":        {user: asksNot, system: `{"security":{"folderTrust":{"enabled":true}}}`, want: Undecided},
		"restricted":         {user: asksNot, env: map[string]string{"GEMINI_RESTRICTED_MODE": "true"}, want: Distrusted},
		"trusted for now":    {rules: map[string]string{"w/app": "DO_NOT_TRUST"}, env: map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"}, want: Trusted},
		"broken settings":    {user: "{", want: Undecided},
		"no level":           {rules: map[string]string{"w/app": "TRUST_FOLDER", "else": "TRUST_ALL"}, want: Undecided, fails: true},
		"no level, unasked":  {user: asksNot, rules: map[string]string{"else": "TRUST_ALL"}, want: Trusted},
	} {
		home, err := os.MkdirTemp(base, "home")
		if err != nil {
			t.Fatal(err)
		}
		user, system := filepath.Join(home, "settings.json"), ""
		rules := "{"
		for path, level := range test.rules {
			if len(rules) > 1 {
				rules += ","
			}
			rules += fmt.Sprintf("%q:%q", at(path), level)
		}
		files := map[string]string{"trustedFolders.json": rules + "}"}
		if test.user != "" {
			files["settings.json"] = test.user
		}
		if test.system != "" {
			files["system.json"], system = test.system, filepath.Join(home, "system.json")
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(home, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		getenv := func(name string) string { return test.env[name] }
		if got, err := TrustOf(getenv, "", user, system, dir); got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
}
