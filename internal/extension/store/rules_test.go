package store

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
)

// TestEnablement: rules are read as in the CLI: the last matching rule decides, and * matches everything below.
func TestEnablement(t *testing.T) {
	for _, c := range []struct {
		rules []string
		at    string
		want  bool
	}{
		{nil, "/a", true},
		{[]string{"!/home/u/*"}, "/home/u", false},
		{[]string{"!/home/u/*"}, "/home/u/ws", false},
		{[]string{"!/home/u/*"}, "/home/user2", true},
		{[]string{"!/home/u/"}, "/home/u", false},
		{[]string{"!/home/u/"}, "/home/u/ws", true},
		{[]string{"!/home/u/*", "/home/u/ws/*"}, "/home/u/ws/deep", true},
		{[]string{"/home/u/ws/*", "!/home/u/*"}, "/home/u/ws", false},
		{[]string{"!/*"}, "/srv/x", false},
		{[]string{"!/*", "/home/u/*"}, "/home/u", true},
		{[]string{"!/home/*/ws/"}, "/home/u/ws", false},
		{[]string{"!/a.b/*"}, "/aXb", true},
		{[]string{"!/a(b/*"}, "/a(b", false},
		{[]string{"!/C:/Users/u/*"}, `C:\Users\u\ws`, false},
	} {
		e := &enablement{rules: map[string][]string{"x": c.rules}}
		if got := e.enabled("x", c.at); got != c.want {
			t.Errorf("%q at %s: %v", c.rules, c.at, got)
		}
	}
}

// TestChangeRules: what enable and disable write into the file.
func TestChangeRules(t *testing.T) {
	const home, ws = "/home/u", "/srv/ws"
	type step struct {
		scope Scope
		on    bool
	}
	for _, c := range []struct {
		before []string
		steps  []step
		want   []string
	}{
		{nil, []step{{User, true}}, []string{"/home/u/*"}},
		{nil, []step{{User, false}}, []string{"!/*", "!/home/u/*"}},
		{nil, []step{{User, false}, {User, true}}, []string{"/home/u/*"}},
		{[]string{"!/*", "/home/u/*"}, []step{{User, true}}, []string{"/home/u/*"}}, // the CLI's enable after pollux's disable
		{nil, []step{{Workspace, false}}, []string{"!/srv/ws/*"}},
		{[]string{"/home/u/*"}, []step{{Workspace, false}, {Workspace, true}}, []string{"/home/u/*", "/srv/ws/*"}},
		{[]string{"!/srv/ws/deep/*", "!/srv/other/*"}, []step{{Workspace, true}}, []string{"!/srv/other/*", "/srv/ws/*"}},
		{[]string{"!/srv/ws/*"}, []step{{User, true}}, []string{"!/srv/ws/*", "/home/u/*"}},
		{[]string{"!/srv/ws/"}, []step{{Workspace, true}}, []string{"/srv/ws/*"}},
		{[]string{"!/srv/ws/*"}, []step{{User, false}}, []string{"!/*", "!/home/u/*"}},
	} {
		e := &enablement{rules: map[string][]string{}}
		e.set("x", c.before)
		for _, s := range c.steps {
			e.change("x", s.scope, s.on, home, ws)
			at := home
			if s.scope == Workspace {
				at = ws
			}
			if got := e.enabled("x", at); got != s.on {
				t.Errorf("%q after %+v: %v", c.before, s, got)
			}
		}
		if diff := cmp.Diff(c.want, e.rules["x"]); diff != "" {
			t.Errorf("%q, %+v: %s", c.before, c.steps, diff)
		}
	}
}

// TestEnablementFile: the file keeps its order, other extensions and unknown parts. A broken file is never
// overwritten, and uninstalling and listing work without it.
func TestEnablementFile(t *testing.T) {
	s := newStore(t)
	const text = `{
  "zeta": {
    "later": {"a": [1]},
    "overrides": ["!/srv/*"]
  },
  "alpha": {"overrides": []}
}`
	write(t, s.enablementFile(), text)
	must(t, s.SetEnabled(context.Background(), "beta", User, true))
	var got map[string]map[string]any
	must(t, json.Unmarshal([]byte(read(t, s.enablementFile())), &got))
	want := map[string]map[string]any{
		"zeta":  {"later": map[string]any{"a": []any{1.0}}, "overrides": []any{"!/srv/*"}},
		"alpha": {"overrides": []any{}}, "beta": {"overrides": []any{s.home + "/*"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	raw := read(t, s.enablementFile())
	if !(strings.Index(raw, "zeta") < strings.Index(raw, "alpha") && strings.Index(raw, "alpha") < strings.Index(raw, "beta")) {
		t.Errorf("the order changed:\n%s", raw)
	}
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	for _, broken := range []string{`{`, `[]`, `{"x":{}}`, `{"x":{"overrides":"all"}}`, `{"x":{"overrides":[1]}}`, `null`} {
		write(t, s.enablementFile(), broken)
		if err := s.SetEnabled(context.Background(), "x", User, false); err == nil || !strings.Contains(err.Error(), "repair it") {
			t.Errorf("%s: %v", broken, err)
		}
		told := 0
		s.warn = func(string) { told++ }
		if all, err := s.List(); err != nil || len(all) != 1 || !all[0].EnabledHere || told != 1 {
			t.Errorf("%s: listed %v, %v, told %d times", broken, all, err, told)
		}
		if read(t, s.enablementFile()) != broken {
			t.Errorf("%s was overwritten", broken)
		}
	}
	must(t, perform(s, "uninstall", ""))
	if left := whole(t, s); left != "" || read(t, s.enablementFile()) != "null" {
		t.Errorf("after uninstalling: %q", left)
	}
}

// TestEnablementLink: a file that the user replaced by a link stays a link.
func TestEnablementLink(t *testing.T) {
	s := newStore(t)
	real := filepath.Join(t.TempDir(), "dotfiles.json")
	write(t, real, `{}`)
	must(t, os.MkdirAll(s.Dir(), 0o700))
	if err := os.Symlink(real, s.enablementFile()); err != nil {
		t.Skip(err)
	}
	must(t, s.SetEnabled(context.Background(), "x", User, false))
	if info, err := os.Lstat(s.enablementFile()); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(read(t, real), "!/*") {
		t.Errorf("%v, %v, %s", info, err, read(t, real))
	}
}

// TestPolicy: the CLI's settings forbid the same as in the CLI; a workspace can only forbid more.
func TestPolicy(t *testing.T) {
	local, git := Metadata{Source: "/srv/ext", Type: "local"}, Metadata{Source: "https://example.com/org/ext", Type: "git"}
	system := filepath.Join(t.TempDir(), "settings.json")
	for _, c := range []struct {
		user, workspace, system string
		local, git              bool
	}{
		{"", "", "", true, true},
		{`{"security":{"blockGitExtensions":true}}`, "", "", true, false},
		{`{"security":{"blockGitExtensions":true}}`, `{"security":{"blockGitExtensions":false}}`, "", true, false},
		{"", `{"security":{"blockGitExtensions":true}}`, "", true, false},
		{`{"security":{"blockGitExtensions":false}}`, "", `{"security":{"blockGitExtensions":true}}`, true, false},
		{`{"security":{"blockGitExtensions":true}}`, "", `{"security":{"blockGitExtensions":false}}`, true, true},
		{`{"security":{"allowedExtensions":["^/srv/"]}}`, "", "", true, false},
		{`{"security":{"allowedExtensions":["^https://example\\.com/org/"]}}`, "", "", false, true},
		{`{"security":{"allowedExtensions":["^/srv/"]}}`, `{"security":{"allowedExtensions":[".*"]}}`, "", true, false},
		{`{"security":{"allowedExtensions":[".*"]}}`, `{"security":{"allowedExtensions":["example"]}}`, "", false, true},
		{`{"security":{"allowedExtensions":["("]}}`, "", "", false, false},
		{`{"security":{"allowedExtensions":["(?=x)"]}}`, "", "", false, false},
		{`{"security":{"blockGitExtensions":true,"allowedExtensions":["example"]}}`, "", "", false, true}, // as in the CLI, the list overrides the block
		{`{"security":{"allowedExtensions":[]}}`, "", "", true, true},
		{"", "", `{"admin":{"extensions":{"enabled":false}}}`, false, false},
		{"// a comment\n{\"security\":{\"blockGitExtensions\":true,},}", "", "", true, false},
		{`{broken`, "", "", false, false},
		{"", `{broken`, "", true, true},
	} {
		s := newStore(t)
		s.workDir = t.TempDir()
		for file, text := range map[string]string{
			filepath.Join(s.gemini, "settings.json"): c.user, filepath.Join(s.workDir, ".gemini", "settings.json"): c.workspace, system: c.system,
		} {
			_ = os.Remove(file)
			if text != "" {
				write(t, file, text)
			}
		}
		p := s.policyOf("", system)
		for _, m := range []struct {
			meta Metadata
			want bool
		}{{local, c.local}, {git, c.git}} {
			if err := p.check(&m.meta, s.workDir); (err == nil) != m.want {
				t.Errorf("%+v: %s: %v, want allowed %v", c, m.meta.Source, err, m.want)
			}
		}
		if err := p.check(nil, s.workDir); err == nil && strings.Contains(c.user, `allowedExtensions":["`) {
			t.Errorf("%+v: an extension without metadata passed", c)
		}
	}
}

// TestPolicyForeignSystem: a machine-wide file that anybody could have written is ignored, as in the CLI. Otherwise
// it could allow what the user's own settings forbid.
func TestPolicyForeignSystem(t *testing.T) {
	dir := t.TempDir()
	system, defaults := filepath.Join(dir, "settings.json"), filepath.Join(dir, "system-defaults.json")
	t.Setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", system)
	s := newStore(t)
	write(t, filepath.Join(s.gemini, "settings.json"), `{"security":{"allowedExtensions":["^/srv/"],"blockGitExtensions":true}}`)
	m := &Metadata{Source: "https://example.com/org/ext", Type: "git"}
	for _, c := range []struct {
		file, text string
		mode       os.FileMode
	}{
		{system, `{"security":{"allowedExtensions":[],"blockGitExtensions":false}}`, 0o666},
		{system, `{"security":{"allowedExtensions":[],"blockGitExtensions":false}}`, 0o664},
		{system, `{"security":{"allowedExtensions":["."]}}`, 0o602},
		{system, `{"experimental":{"extensionRegistryURI":"https://evil.example"}}`, 0o666},
		{defaults, `{broken`, 0o666},
		{defaults, `{"experimental":{"extensionRegistryURI":"https://evil.example"}}`, 0o666},
	} {
		write(t, c.file, c.text)
		must(t, os.Chmod(c.file, c.mode))
		p := s.readPolicy()
		if err := p.check(m, s.workDir); err == nil || !strings.Contains(err.Error(), "allowedExtensions") || p.registry != "" {
			t.Errorf("%s with mode %o and %s counts: %v, %q", filepath.Base(c.file), c.mode, c.text, err, p.registry)
		}
		must(t, os.Remove(c.file))
	}
}

// TestPolicyAtInstall: forbidden sources are not even fetched, and an installed one is listed with the reason.
func TestPolicyAtInstall(t *testing.T) {
	s := newStore(t)
	src := extension(t, t.TempDir(), "1")
	must(t, perform(s, "install", src))
	write(t, filepath.Join(s.gemini, "settings.json"), `{"security":{"allowedExtensions":["^/nowhere/"]}}`)
	x, err := s.Get("x")
	must(t, err)
	if !strings.Contains(x.Problem, "allowedExtensions") {
		t.Errorf("problem %q", x.Problem)
	}
	must(t, s.Uninstall(context.Background(), x)) // removing is always allowed
	if err := perform(s, "install", src); err == nil || !strings.Contains(err.Error(), "allowedExtensions") {
		t.Errorf("error %v", err)
	}
	write(t, filepath.Join(s.gemini, "settings.json"), `{}`)
	write(t, filepath.Join(s.gemini, "trustedFolders.json"), `{"`+filepath.ToSlash(src)+`":"DO_NOT_TRUST"}`)
	if err := perform(s, "install", src); err == nil || !strings.Contains(err.Error(), "trusted folders") {
		t.Errorf("a distrusted source: %v", err)
	}
}

// TestTrust: the longest rule decides, and the CLI's variables come first.
func TestTrust(t *testing.T) {
	s := newStore(t)
	write(t, filepath.Join(s.gemini, "trustedFolders.json"), `{
		"/srv": "TRUST_FOLDER", "/srv/bad": "DO_NOT_TRUST", "/opt/child": "TRUST_PARENT" // comments are allowed
	}`)
	for dir, want := range map[string]clisettings.Trust{
		"/srv": clisettings.Trusted, "/srv/a": clisettings.Trusted, "/srv/bad/x": clisettings.Distrusted,
		"/opt": clisettings.Trusted, "/opt/other": clisettings.Trusted, "/srvx": clisettings.Undecided,
	} {
		if got := s.TrustOf(dir); got != want {
			t.Errorf("%s: %v, want %v", dir, got, want)
		}
	}
	write(t, filepath.Join(s.gemini, "settings.json"), `{"security":{"folderTrust":{"enabled":false}}}`)
	if s.TrustOf("/elsewhere") != clisettings.Trusted {
		t.Error("with folder trust off everything is trusted")
	}
	t.Setenv("GEMINI_CLI_TRUST_WORKSPACE", "false")
	if s.TrustOf("/srv") != clisettings.Distrusted {
		t.Error("GEMINI_CLI_TRUST_WORKSPACE=false")
	}
}

// TestTrustBroken: with an invalid list of trusted folders, with which the CLI would not start, no folder is trusted,
// and the user is told.
func TestTrustBroken(t *testing.T) {
	for name, text := range map[string]string{"no JSON": `{"/srv":`, "a list": `[]`, "null": `{"/srv": null}`, "a level that is none": `{"/srv": "TRUST_FOLDER", "/x": "TRUST_ALL"}`} {
		s := newStore(t)
		told := ""
		s.warn = func(text string) { told = text }
		write(t, filepath.Join(s.gemini, "trustedFolders.json"), text)
		if got := s.TrustOf("/srv"); got != clisettings.Undecided || !strings.Contains(told, "trustedFolders.json") {
			t.Errorf("%s: %v, told %q", name, got, told)
		}
	}
}
