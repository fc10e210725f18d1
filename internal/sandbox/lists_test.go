package sandbox

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// TestLists: every line of a list has a source, and none is there twice.
func TestLists(t *testing.T) {
	for name, list := range map[string]string{"workspace": workspaceList, "startup": startupList, "secrets": secretsList, "variables": variablesList} {
		for i, line := range strings.Split(strings.TrimSpace(list), "\n") {
			if strings.HasPrefix(line, "# ") || line == "" {
				continue
			}
			what, source, ok := strings.Cut(line, " # ")
			if !ok || what == "" || source == "" || what != strings.TrimSpace(what) {
				t.Errorf("lists/%s.txt:%d: %q has no source", name, i+1, line)
			}
			if name != "variables" && (path.IsAbs(what) || path.Clean(what) != what) {
				t.Errorf("lists/%s.txt:%d: %q is no path in a folder", name, i+1, what)
			}
		}
		all := lines(list)
		slices.Sort(all)
		for i := 1; i < len(all); i++ {
			if all[i] == all[i-1] {
				t.Errorf("lists/%s.txt: %q is there twice", name, all[i])
			}
		}
	}
	for _, v := range variables() {
		if v.name == "" || v.usual == "" {
			t.Errorf("%+v", v)
		}
		if len(named(slices.Concat(secretStores(), protectedHome()), func(name string) string {
			if name == v.name {
				return "/x"
			}
			return ""
		}, "/home/u")) == 0 {
			t.Errorf("%s names nothing of the lists", v.name)
		}
	}
}

// TestNamed: a path that a variable names is protected like the usual path that it replaces, but never a whole home
// folder.
func TestNamed(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"CODEX_HOME", "/data/codex", "/data/codex"},
		{"GEMINI_CLI_HOME", "/data", "/data/.gemini"},
		{"KUBECONFIG", "/a/one:/b/two", "/a/one /b/two"},
		{"KRB5CCNAME", "FILE:/tmp/krb5", "/tmp/krb5"},
		{"CARGO_HOME", "/c", "/c/credentials /c/credentials.toml"},
		{"NETRC", "relative/netrc", ""},
		{"CODEX_HOME", "/", ""},
		{"CODEX_HOME", "/home/u", ""},
		{"CODEX_HOME", "/home", ""},
		{"CODEX_HOME", "/home/u/x/..", ""},
		{"CODEX_HOME", "/home/u/../u/c", "/home/u/c"},
		{"GNUPGHOME", "", ""},
	} {
		got := named(secretStores(), func(name string) string {
			if name == test.name {
				return test.value
			}
			return ""
		}, "/home/u")
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s=%s: %q, want %q", test.name, test.value, got, test.want)
		}
	}
}
