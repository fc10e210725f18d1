package paths

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// pollux never starts a program from a project by itself, whatever PATH says (SPEC S-1).
func TestProgram(t *testing.T) {
	root := Real(t.TempDir())
	home := filepath.Join(root, "home")
	suffix := map[string]string{"windows": ".exe"}[runtime.GOOS]
	for _, name := range []string{"good", "home/.local/bin", "home/app", "home/app/bin", "home/app/sub/.venv/bin", "home/app/sub/node_modules/.bin", "home/node_modules/.bin", "other/bin", "other/sub"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name, "git"+suffix), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"home/app/.git", "home/.git", "other/package.json"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, "app/bin"), filepath.Join(root, "link")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for name, test := range map[string]struct{ dir, path, want string }{
		"usual":                         {"home/app", "good", "good"},
		"the working folder":            {"home/app", ".:good", "good"},
		"an empty entry":                {"home/app", ":good", "good"},
		"a relative folder":             {"home/app", "bin:good", "good"},
		"the project's folder":          {"home/app", "/home/app/bin:good", "good"},
		"from below in the project":     {"home/app/sub", "/home/app/bin:/home/app/sub/.venv/bin:good", "good"},
		"a package's programs":          {"home/app/sub", "/home/app/sub/node_modules/.bin:good", "good"},
		"packages above":                {"home/app/sub", "/home/node_modules/.bin:good", "good"},
		"packages, from elsewhere":      {"other", "/home/app/sub/node_modules/.bin:good", "good"},
		"a link into the project":       {"home/app", "/link:good", "good"},
		"a project outside of the home": {"other/sub", "/other/bin:good", "good"},
		"dots":                          {"home/app", "/good/../home/app/bin:good", "good"},
		"the home folder's own":         {"home/app", "/home/.local/bin:good", "home/.local/bin"},
		"standing in the home folder":   {"home", "/home/.local/bin:good", "home/.local/bin"},
		"nowhere else":                  {"home/app", "/home/app/bin", ""},
		"nowhere":                       {"home/app", "/home", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(filepath.Join(root, test.dir))
			var path []string
			for dir := range strings.SplitSeq(test.path, ":") {
				if strings.HasPrefix(dir, "/") || dir == "good" {
					dir = root + "/" + strings.TrimPrefix(dir, "/")
				}
				path = append(path, dir)
			}
			t.Setenv("PATH", strings.Join(path, string(os.PathListSeparator)))
			got, err := Program("git")
			if want := filepath.Join(root, test.want, "git"+suffix); test.want != "" && got != want || (err != nil) != (test.want == "") {
				t.Errorf("%q %v, want %q", got, err, want)
			}
		})
	}
}
