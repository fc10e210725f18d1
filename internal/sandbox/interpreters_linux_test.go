package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

// standIn is a script that answers like an interpreter that lives where it
// does, counts how often it was asked, and otherwise says that it ran.
const standIn = `#!/bin/sh
self=$(readlink -f "$0") prefix=$(dirname $(dirname $(readlink -f "$0")))
case "$*" in
*sys.executable*) echo x >>"$ASKED"; echo "[\"$0\", \"$prefix\", \"$prefix\", \"$prefix\"]" ;;
*process.execPath*) echo x >>"$ASKED"; echo "[\"$self\", \"$prefix\"]" ;;
*) cat "$prefix/lib/part" && echo "ran with $*" ;;
esac
`

// manager is a version manager: its "which" names the program.
func manager(target string) string {
	return "#!/bin/sh\necho x >>\"$ASKED\"\n[ \"$1\" = which ] && echo \"$HOME/" + target + "\"\n"
}

// TestVersionManagers: interpreters start at every level wherever version
// managers put them; nobody is asked twice; no more of the home folder is
// shown than what they are made of.
func TestVersionManagers(t *testing.T) {
	const shim = "#!/bin/sh\necho the shim ran; exit 9\n"
	for name, test := range map[string]struct {
		program string            // as the user calls it
		path    string            // what is in PATH, below the home folder
		files   map[string]string // "-> x" is a link
		asked   int               // outside
		shows   string            // below the home folder
	}{
		"pyenv": {"python3", ".pyenv/shims:.pyenv/bin", map[string]string{".pyenv/shims/python3": shim, ".pyenv/bin/pyenv": manager(".pyenv/versions/3.12/bin/python3"), ".pyenv/versions/3.12/bin/python3": standIn, ".pyenv/versions/3.12/lib/part": ""}, 2, ".pyenv/versions/3.12"},
		"asdf":  {"node", ".asdf/shims", map[string]string{".asdf/shims/node": shim, ".asdf/bin/asdf": manager(".asdf/installs/nodejs/20/bin/node"), ".asdf/installs/nodejs/20/bin/node": standIn, ".asdf/installs/nodejs/20/lib/part": ""}, 2, ".asdf/installs/nodejs/20"},
		"mise":  {"python3", ".local/share/mise/shims:.local/bin", map[string]string{".local/share/mise/shims/python3": "-> ../../../bin/mise", ".local/bin/mise": manager(".local/share/mise/installs/python/3.12/bin/python3"), ".local/share/mise/installs/python/3.12/bin/python3": standIn, ".local/share/mise/installs/python/3.12/lib/part": ""}, 2, ".local/share/mise/installs/python/3.12"},
		"rbenv": {"ruby", ".rbenv/shims:.rbenv/bin", map[string]string{".rbenv/shims/ruby": shim, ".rbenv/bin/rbenv": manager(".rbenv/versions/3.3/bin/ruby"), ".rbenv/versions/3.3/bin/ruby": standIn, ".rbenv/versions/3.3/lib/part": ""}, 1, ".rbenv/versions/3.3"},
		"nvm":   {"node", ".nvm/versions/node/v20/bin", map[string]string{".nvm/versions/node/v20/bin/node": standIn, ".nvm/versions/node/v20/lib/part": ""}, 1, ".nvm/versions/node/v20"},
		"fnm":   {"node", ".local/state/fnm_multishells/1/bin", map[string]string{".local/state/fnm_multishells/1": "-> ../../share/fnm/node-versions/v20/installation", ".local/share/fnm/node-versions/v20/installation/bin/node": standIn, ".local/share/fnm/node-versions/v20/installation/lib/part": ""}, 1, ".local/share/fnm/node-versions/v20/installation"},
		"volta": {"node", ".volta/bin", map[string]string{".volta/bin/node": "-> volta-shim", ".volta/bin/volta-shim": "#!/bin/sh\nexec \"$HOME/.volta/tools/image/node/20/bin/node\" \"$@\"\n", ".volta/tools/image/node/20/bin/node": standIn, ".volta/tools/image/node/20/lib/part": ""}, 1, ".volta/tools/image/node/20"},
		"brew":  {"python3", ".linuxbrew/bin", map[string]string{".linuxbrew/bin/python3": "-> ../Cellar/python/3.12/bin/python3", ".linuxbrew/Cellar/python/3.12/bin/python3": standIn, ".linuxbrew/Cellar/python/3.12/lib/part": "-> ../../../openssl/3/lib/part", ".linuxbrew/Cellar/openssl/3/lib/part": ""}, 1, ".linuxbrew"},
		"uv":    {"python3", ".venv/bin", map[string]string{".venv/bin/python3": "-> ../../.local/share/uv/python/cpython-3.12/bin/python3.12", ".local/share/uv/python/cpython-3.12/bin/python3.12": standIn, ".local/share/uv/python/cpython-3.12/lib/part": ""}, 1, ".local/share/uv/python/cpython-3.12"},
		"link":  {"tool", "bin", map[string]string{"bin/tool": "-> ../apps/tool/bin/run", "apps/tool/bin/run": "#!/bin/sh\necho \"ran with $*\"\n"}, 0, "apps/tool/bin/run"},
	} {
		t.Run(name, func(t *testing.T) {
			home, asked := canonical(t.TempDir()), filepath.Join(t.TempDir(), "asked")
			test.files["notes"] = "secret"
			for file, content := range test.files {
				path := filepath.Join(home, file)
				err := os.MkdirAll(filepath.Dir(path), 0o700)
				if to, isLink := strings.CutPrefix(content, "-> "); isLink {
					err = errors.Join(err, os.Symlink(to, path))
				} else {
					err = errors.Join(err, os.WriteFile(path, []byte(content), 0o700))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("HOME", home)
			t.Setenv("ASKED", asked)
			var path []string
			for dir := range strings.SplitSeq(test.path, ":") {
				path = append(path, filepath.Join(home, dir))
			}
			t.Setenv("PATH", strings.Join(append(path, "/usr/bin", "/bin"), ":"))
			s := New(&Options{Home: home, Cache: t.TempDir()})
			for _, level := range []manifest.Access{manifest.None, manifest.Home, manifest.Full} {
				r := runIn(t, s, Policy{Read: level}, Command{Args: []string{test.program, "x y"}})
				if r.Code != 0 || !strings.HasSuffix(string(r.Stdout), "ran with x y\n") {
					t.Errorf("%v: %d %s%s", level, r.Code, r.Stdout, r.Stderr)
				}
			}
			if data, _ := os.ReadFile(asked); strings.Count(string(data), "x") != test.asked {
				t.Errorf("asked %d times in three runs, want %d", strings.Count(string(data), "x"), test.asked)
			}
			plan, err := s.Explain(t.Context(), Policy{}, Command{Args: []string{test.program}})
			if err != nil {
				t.Fatal(err)
			}
			var shown []string
			for _, p := range plan.Paths {
				if rel, ok := strings.CutPrefix(p.Path, home+"/"); ok && p.Access != AccessLink {
					shown = append(shown, rel)
				}
			}
			if !slices.Equal(shown, []string{test.shows}) {
				t.Errorf("shown of the home folder: %q, want %q", shown, test.shows)
			}
		})
	}
}
