//go:build unix

package program

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// holds says whether dir is or contains a folder that must not be shown because of a program.
func (f *finder) holds(dir string) bool {
	return dir == "/" || slices.ContainsFunc(f.guarded, func(g string) bool { return paths.Within(dir, g) })
}

// alwaysShown says whether every sandbox shows a path.
func (f *finder) alwaysShown(path string) bool {
	return slices.ContainsFunc(f.shown, func(dir string) bool { return paths.Within(dir, path) })
}

// belongings adds the least that a program needs: its own file, or the installation folder with its libraries if that
// is recognised.
func (f *finder) belongings(real string) {
	f.ReadOnly = append(f.ReadOnly, real)
	bin := filepath.Dir(real)
	prefix := filepath.Dir(bin)
	if base := filepath.Base(bin); (base == "bin" || base == "sbin") && (managed(prefix) || strings.Contains(prefix, cellar)) {
		f.installation(prefix)
	}
}

// cellar is Homebrew's package folder, below its own folder.
const cellar = "/Cellar/"

// managed says whether a folder lies where version managers, or people by custom, keep one installation beside
// another.
func managed(prefix string) bool {
	marks := []string{"versions", "Versions", "node-versions", "installs", "toolchains", "candidates", "image", "envs", "venvs", "uv", "opt"}
	for range 3 {
		prefix = filepath.Dir(prefix)
		if slices.Contains(marks, filepath.Base(prefix)) {
			return true
		}
	}
	return false
}

// installation adds the parts of an installation below a canonical folder. It never adds a whole folder that holds
// more than installations.
func (f *finder) installation(prefix string) {
	brew, rest, inBrew := strings.Cut(prefix, cellar)
	switch {
	case f.alwaysShown(prefix):
	case inBrew && brew != "" && !f.holds(brew): // packages depend on each other
		f.parts(brew, "Cellar", "opt", "bin", "lib", "share", "Frameworks", "etc")
	case inBrew && strings.Contains(rest, "/") && !f.holds(prefix), managed(prefix) && !f.holds(prefix):
		f.ReadOnly = append(f.ReadOnly, prefix)
	case exists(filepath.Join(prefix, "conda-meta")):
		f.parts(prefix, "bin", "lib", "libexec", "include", "share", "ssl", "etc", "conda-meta", "pkgs")
	default:
		f.parts(prefix, "bin", "lib", "lib64", "include")
	}
}

// parts adds the named parts of an installation that really lie in its folder.
func (f *finder) parts(prefix string, names ...string) {
	for _, name := range names {
		path := filepath.Join(prefix, name)
		if !exists(path) {
			continue
		}
		if real := paths.Real(path); paths.Within(prefix, real) && real != prefix && !f.holds(real) {
			_, _ = f.addLinks(path) // no error: it was followed a moment ago
			f.ReadOnly = append(f.ReadOnly, real)
		}
	}
}

// python adds the installations of a Python: the one that its file lies in, and the one that a virtual environment
// names.
func (f *finder) python(path, real string) error {
	f.standardLibrary(filepath.Dir(real))
	env, home := virtualEnvironment(path)
	if env == "" {
		return nil
	}
	config := filepath.Join(env, "pyvenv.cfg")
	if !filepath.IsAbs(home) || !f.standardLibrary(paths.Real(home)) {
		return fmt.Errorf("%q says home = %q, where no Python is installed; make the environment anew with python3 -m venv %q", config, home, env)
	}
	if _, err := f.addLinks(home); err != nil {
		return err
	}
	real, err := f.addLinks(env)
	if err != nil {
		return err
	}
	if !f.alwaysShown(real) {
		f.parts(real, "pyvenv.cfg", "bin", "lib", "lib64", "include", "share", "etc")
	}
	return nil
}

// virtualEnvironment reads pyvenv.cfg beside or above a Python, as Python does. It returns the environment's folder
// and the folder of the Python that made it; env is "" if there is none.
func virtualEnvironment(path string) (env, home string) {
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		text, err := readSmall(filepath.Join(dir, "pyvenv.cfg"))
		if err != nil {
			continue
		}
		if home, ok := venvHome(text); ok {
			return dir, home
		}
	}
	return "", ""
}

// venvHome returns the value of "home" in pyvenv.cfg, false if there is none.
func venvHome(text string) (string, bool) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.EqualFold(strings.TrimSpace(key), "home") {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// standardLibrary adds the installation of the Python in a canonical folder: the nearest folder above that has a
// standard library. It is false, and adds nothing, if there is none.
func (f *finder) standardLibrary(bin string) bool {
	if f.alwaysShown(bin) {
		return true
	}
	prefix := bin
	for range 2 {
		if hasStandardLibrary(prefix) {
			f.installation(prefix)
			return true
		}
		prefix = filepath.Dir(prefix)
	}
	return false
}

// hasStandardLibrary says whether a canonical folder contains a Python standard library. Links out of the folder do
// not count.
func hasStandardLibrary(prefix string) bool {
	for _, name := range []string{"lib", "lib64"} {
		lib := filepath.Join(prefix, name)
		entries, _ := os.ReadDir(lib) // if unreadable, no Python could use it
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "python") && !strings.HasPrefix(e.Name(), "pypy") && !strings.HasPrefix(e.Name(), "graalpy") {
				continue
			}
			if real, err := filepath.EvalSymlinks(filepath.Join(lib, e.Name(), "os.py")); err == nil && paths.Within(prefix, real) {
				return true
			}
		}
	}
	return false
}

// NodeVersion returns a Node's version according to its headers, or "" without headers.
func NodeVersion(path string) string {
	text, err := readSmall(filepath.Join(filepath.Dir(filepath.Dir(paths.Real(path))), "include/node/node_version.h"))
	if err != nil {
		return ""
	}
	numbers := map[string]string{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "#define" {
			numbers[words[1]] = words[2]
		}
	}
	version := numbers["NODE_MAJOR_VERSION"] + "." + numbers["NODE_MINOR_VERSION"] + "." + numbers["NODE_PATCH_VERSION"]
	if strings.Trim(version, "0123456789.") != "" || strings.Contains("."+version+".", "..") {
		return ""
	}
	return version
}

// node adds the installation of a Node, if it has more than its own file.
func (f *finder) node(real string) {
	bin := filepath.Dir(real)
	prefix := filepath.Dir(bin)
	if filepath.Base(bin) != "bin" {
		return
	}
	for _, name := range []string{"lib/node_modules", "include/node"} {
		if inside, err := filepath.EvalSymlinks(filepath.Join(prefix, name)); err == nil && paths.Within(prefix, inside) {
			f.installation(prefix)
			return
		}
	}
}
