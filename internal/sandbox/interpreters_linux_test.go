package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
)

// standIn is a fake interpreter that works only if its whole installation is visible.
const standIn = `#!/bin/sh
cat "$(dirname $(dirname $(readlink -f "$0")))/lib/part" && echo "ran with $*"
`

// TestVersionManagers: interpreters start at every level wherever version managers put them. Nothing runs outside,
// and only their installation is shown of the home folder.
func TestVersionManagers(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	const shim = "#!/bin/sh\necho the shim ran; echo x >>\"$ASKED\"; exit 9\n"
	const asdf = "#!/usr/bin/env bash\n# asdf-plugin: nodejs 20\nexec asdf exec \"node\" \"$@\"\n"
	for name, test := range map[string]struct {
		program string            // as the user types it
		path    string            // what is in PATH, below the home folder
		files   map[string]string // "-> x" is a link
		shows   []string          // below the home folder
	}{
		"pyenv":                {"python3", ".pyenv/shims:.pyenv/bin", map[string]string{".pyenv/shims/python3": shim, ".pyenv/bin/pyenv": shim, ".pyenv/version": "3.12\n", ".pyenv/versions/3.12/bin/python3": standIn, ".pyenv/versions/3.12/lib/part": "", ".pyenv/versions/3.11/bin/python3": shim}, []string{".pyenv/versions/3.12"}},
		"pyenv, the project's": {"python3", ".pyenv/shims", map[string]string{".pyenv/shims/python3": shim, ".pyenv/version": "3.11\n", "project/.python-version": "# ours\n3.12\n", ".pyenv/versions/3.12.9/bin/python3": shim, ".pyenv/versions/3.12.10/bin/python3": standIn, ".pyenv/versions/3.12.10/lib/part": "", ".pyenv/versions/3.11/bin/python3": shim}, []string{".pyenv/versions/3.12.10"}},
		"pyenv, an environment": {"python3", ".pyenv/shims", map[string]string{".pyenv/shims/python3": shim, ".pyenv/version": "app\n", ".pyenv/versions/app": "-> 3.12/envs/app", ".pyenv/versions/3.12/bin/python3": standIn, ".pyenv/versions/3.12/lib/python3.12/os.py": "", ".pyenv/versions/3.12/lib/part": "",
			".pyenv/versions/3.12/envs/app/bin/python3": "-> ../../../bin/python3", ".pyenv/versions/3.12/envs/app/pyvenv.cfg": "home = HOME/.pyenv/versions/3.12/bin\n"}, []string{".pyenv/versions/3.12"}},
		"asdf":                 {"node", ".asdf/shims", map[string]string{".asdf/shims/node": asdf, ".tool-versions": "nodejs 20\n", ".asdf/bin/asdf": shim, ".asdf/installs/nodejs/20/bin/node": standIn, ".asdf/installs/nodejs/20/lib/part": "", ".asdf/installs/nodejs/22/bin/node": shim}, []string{".asdf/installs/nodejs/20"}},
		"mise":                 {"python3", ".local/share/mise/shims:.local/bin", map[string]string{".local/share/mise/shims/python3": "-> ../../../bin/mise", ".local/bin/mise": shim, ".config/mise/config.toml": "[env]\nA = \"1\"\n[tools]\nnode = \"22\"\npython = [\"3.12\", \"3.11\"]\n", ".local/share/mise/installs/python/3.12": "-> ./3.12.4", ".local/share/mise/installs/python/3.12.4/bin/python3": standIn, ".local/share/mise/installs/python/3.12.4/lib/part": "", ".local/share/mise/installs/python/3.11/bin/python3": shim}, []string{".local/share/mise/installs/python/3.12.4"}},
		"mise, the only one":   {"ruby", ".local/share/mise/shims", map[string]string{".local/share/mise/shims/ruby": shim, ".local/share/mise/installs/ruby/latest": "-> ./3.3", ".local/share/mise/installs/ruby/3.3/bin/ruby": standIn, ".local/share/mise/installs/ruby/3.3/lib/part": ""}, []string{".local/share/mise/installs/ruby/3.3"}},
		"rbenv":                {"ruby", ".rbenv/shims:.rbenv/bin", map[string]string{".rbenv/shims/ruby": shim, ".rbenv/bin/rbenv": shim, ".rbenv/version": "ruby-3.3", ".rbenv/versions/3.3/bin/ruby": standIn, ".rbenv/versions/3.3/lib/part": ""}, []string{".rbenv/versions/3.3"}},
		"nodenv":               {"node", ".nodenv/shims", map[string]string{".nodenv/shims/node": shim, "project/.node-version": "v20\n", ".nodenv/versions/20.11.1/bin/node": standIn, ".nodenv/versions/20.11.1/lib/part": ""}, []string{".nodenv/versions/20.11.1"}},
		"nvm":                  {"node", ".nvm/versions/node/v20/bin", map[string]string{".nvm/versions/node/v20/bin/node": standIn, ".nvm/versions/node/v20/lib/part": ""}, []string{".nvm/versions/node/v20"}},
		"fnm":                  {"node", ".local/state/fnm_multishells/1/bin", map[string]string{".local/state/fnm_multishells/1": "-> ../../share/fnm/node-versions/v20/installation", ".local/share/fnm/node-versions/v20/installation/bin/node": standIn, ".local/share/fnm/node-versions/v20/installation/lib/part": ""}, []string{".local/share/fnm/node-versions/v20/installation"}},
		"volta":                {"node", ".volta/bin", map[string]string{".volta/bin/node": "-> volta-shim", ".volta/bin/volta-shim": shim, ".volta/tools/user/platform.json": `{"node":{"runtime":"20.1.0","npm":null},"yarn":null}`, ".volta/tools/image/node/20.1.0/bin/node": standIn, ".volta/tools/image/node/20.1.0/lib/part": ""}, []string{".volta/tools/image/node/20.1.0"}},
		"volta, pinned":        {"node", ".volta/bin", map[string]string{".volta/bin/node": "-> volta-shim", ".volta/bin/volta-shim": shim, "project/package.json": `{"volta":{"node":"18.2.0"}}`, ".volta/tools/user/platform.json": `{"node":{"runtime":"20.1.0"}}`, ".volta/tools/image/node/20.1.0/bin/node": shim, ".volta/tools/image/node/18.2.0/bin/node": standIn, ".volta/tools/image/node/18.2.0/lib/part": ""}, []string{".volta/tools/image/node/18.2.0"}},
		"brew":                 {"python3", ".linuxbrew/bin", map[string]string{".linuxbrew/bin/python3": "-> ../Cellar/python/3.12/bin/python3", ".linuxbrew/Cellar/python/3.12/bin/python3": standIn, ".linuxbrew/Cellar/python/3.12/lib/part": "-> ../../../openssl/3/lib/part", ".linuxbrew/Cellar/openssl/3/lib/part": "", ".linuxbrew/var/db/secret": ""}, []string{".linuxbrew/Cellar", ".linuxbrew/bin"}},
		"uv":                   {"python3", ".venv/bin", map[string]string{".venv/bin/python3": "-> ../../.local/share/uv/python/cpython-3.12/bin/python3.12", ".local/share/uv/python/cpython-3.12/bin/python3.12": standIn, ".local/share/uv/python/cpython-3.12/lib/part": ""}, []string{".local/share/uv/python/cpython-3.12"}},
		"a copied environment": {"python3", ".venv/bin", map[string]string{".venv/bin/python3": standIn, ".venv/pyvenv.cfg": "version = 3.12\nhome = HOME/python/bin\n", ".venv/lib/part": "", ".venv/notes": "", "python/bin/python3": standIn, "python/lib/python3.12/os.py": "", "python/notes": ""}, []string{".venv/bin", ".venv/lib", ".venv/pyvenv.cfg", "python/bin", "python/lib"}},
		"conda":                {"python3", "miniconda3/bin", map[string]string{"miniconda3/bin/python3": standIn, "miniconda3/lib/python3.12/os.py": "", "miniconda3/lib/part": "", "miniconda3/conda-meta/history": "", "miniconda3/ssl/cacert.pem": "", "miniconda3/envs/x/secret": ""}, []string{"miniconda3/bin", "miniconda3/conda-meta", "miniconda3/lib", "miniconda3/ssl"}},
		"unpacked":             {"node", "node-v20/bin", map[string]string{"node-v20/bin/node": standIn, "node-v20/lib/node_modules/npm/x": "", "node-v20/lib/part": "", "node-v20/README.md": ""}, []string{"node-v20/bin", "node-v20/lib"}},
		"link":                 {"tool", "bin", map[string]string{"bin/tool": "-> ../apps/tool/bin/run", "apps/tool/bin/run": "#!/bin/sh\necho \"ran with $*\"\n"}, []string{"apps/tool/bin/run"}},
	} {
		t.Run(name, func(t *testing.T) {
			home, asked := paths.Real(t.TempDir()), filepath.Join(t.TempDir(), "asked")
			test.files["notes"] = "secret"
			test.files["project/x"] = ""
			for file, content := range test.files {
				content = strings.ReplaceAll(content, "HOME", home)
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
			s := New(&Options{Home: home})
			for _, level := range []permission.Access{permission.None, permission.Home, permission.Full} {
				r := runIn(t, s, Policy{Read: level}, Command{Args: []string{test.program, "x y"}, Dir: home + "/project"})
				if r.Code != 0 || !strings.HasSuffix(string(r.Stdout), "ran with x y\n") {
					t.Errorf("%v: %d %s%s", level, r.Code, r.Stdout, r.Stderr)
				}
			}
			if exists(asked) {
				t.Error("a shim was run")
			}
			plan, err := s.Explain(Policy{}, Command{Args: []string{test.program}, Dir: home + "/project"})
			if err != nil {
				t.Fatal(err)
			}
			var shown []string
			for _, p := range plan.Paths {
				if rel, ok := strings.CutPrefix(p.Path, home+"/"); ok && p.Access != AccessLink {
					shown = append(shown, rel)
				}
			}
			if !slices.Equal(shown, test.shows) {
				t.Errorf("shown of the home folder: %q, want %q", shown, test.shows)
			}
		})
	}
}

// TestRealPythons: the Pythons of this machine report the same identity inside as outside: the user's own, and
// virtual environments made by it and by the system's, called by name, by path and by relative path.
func TestRealPythons(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	need(t, "python3")
	workspace := paths.Real(t.TempDir())
	who := []string{"-I", "-c", "import sys, ssl, encodings; print(sys.executable, sys.prefix, sys.base_prefix)"}
	pythons := []string{"python3", "/usr/bin/python3"}
	for i, how := range [][]string{{"python3", "-m", "venv"}, {"/usr/bin/python3", "-m", "venv", "--without-pip"}, {"/usr/bin/python3", "-m", "venv", "--without-pip", "--copies"}} {
		env := filepath.Join(workspace, "env"+strconv.Itoa(i))
		if out, err := exec.Command(how[0], append(how[1:], env)...).CombinedOutput(); err != nil {
			if i > 0 { // this Debian has no venv for its own Python
				continue
			}
			t.Fatalf("%v %s", err, out)
		}
		pythons = append(pythons, env+"/bin/python3", "env"+strconv.Itoa(i)+"/bin/python3")
	}
	for _, python := range pythons {
		outside := exec.Command(python, who...)
		if outside.Dir = "/"; strings.HasPrefix(python, "env") {
			outside = exec.Command(filepath.Join(workspace, python), who...)
		}
		want, err := outside.Output()
		if err != nil {
			t.Fatal(err)
		}
		r := runIn(t, New(nil), Policy{}, Command{Args: append([]string{python}, who...), Workspace: workspace, Dir: workspace})
		if r.Code != 0 || string(r.Stdout) != string(want) {
			t.Errorf("%s: %d %s%s, want %s", python, r.Code, r.Stdout, r.Stderr, want)
		}
	}
}
