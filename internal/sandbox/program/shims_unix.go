//go:build unix

package program

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// A manager is a version manager. Its shims choose among the versions that it installed.
type manager struct {
	name    string
	root    string // the folder with its shims and installed versions
	program string // the program to find
	project string // the folder whose files choose versions
}

// passShim returns the program that a version manager's shim would run. It reads the manager's files in the manager's
// order, and runs nothing.
func passShim(path, project string) (string, error) {
	dir := filepath.Dir(path)
	m := manager{root: filepath.Dir(dir), program: filepath.Base(path), project: project}
	m.name = managerOf(m.root)
	var find func() string
	switch {
	case filepath.Base(dir) == "bin" && m.name == "volta":
		if to, err := os.Readlink(path); err != nil || filepath.Base(to) != "volta-shim" {
			return path, nil
		}
		find = m.volta
	case filepath.Base(dir) != "shims" || m.name == "volta":
		return path, nil
	case m.name == "asdf" || m.name == "mise":
		find = m.installs
	case m.name != "":
		find = m.versions
	default:
		return path, nil
	}
	if real := find(); real != "" {
		return real, nil
	}
	return "", fmt.Errorf("%s has no %q in the chosen version (looked for in %q, from %q on); install it, choose another version, or name the program by its path", m.name, m.program, m.root, project)
}

// managerOf returns the version manager of a folder, or "". It knows it by a variable that the user set, or by the
// folder's usual name.
func managerOf(root string) string {
	name := strings.TrimPrefix(filepath.Base(root), ".")
	for manager, variable := range map[string]string{"pyenv": "PYENV_ROOT", "rbenv": "RBENV_ROOT", "nodenv": "NODENV_ROOT", "goenv": "GOENV_ROOT", "asdf": "ASDF_DATA_DIR", "mise": "MISE_DATA_DIR", "volta": "VOLTA_HOME"} {
		if manager == name || os.Getenv(variable) == root {
			return manager
		}
	}
	return ""
}

// versions finds the program for pyenv and managers modelled on it. The version comes from the variable, the nearest
// version file, the global file, or the system, in this order.
func (m manager) versions() string {
	language := map[string]string{"pyenv": "python", "rbenv": "ruby", "nodenv": "node", "goenv": "go"}[m.name]
	wanted := strings.Split(os.Getenv(strings.ToUpper(m.name)+"_VERSION"), ":")
	for _, dir := range upward(m.project) {
		wanted = append(wanted, fileWords(filepath.Join(dir, "."+language+"-version"))...)
	}
	wanted = append(append(wanted, fileWords(filepath.Join(m.root, "version"))...), "system")
	for _, want := range wanted {
		if want == "system" {
			path, _ := inPath(m.program, filepath.Join(m.root, "shims"))
			if path != "" && filepath.Base(filepath.Dir(path)) != "shims" {
				return path
			}
			continue
		}
		versions := filepath.Join(m.root, "versions")
		for _, want := range []string{want, strings.TrimPrefix(want, language+"-"), strings.TrimPrefix(want, "v")} {
			if path := filepath.Join(versions, pick(versions, want), "bin", m.program); path != filepath.Join(versions, "bin", m.program) && executable(path) {
				return path
			}
		}
	}
	return ""
}

// installs finds the program for asdf and mise, which manage many kinds of tools. It takes the version that a
// variable or the nearest file names for a tool with that program, or the only installed one.
func (m manager) installs() string {
	installs := filepath.Join(m.root, "installs")
	chosen := m.chosen()
	var all []string
	for _, tool := range list(installs) {
		versions := filepath.Join(installs, tool)
		for _, want := range append(strings.Fields(os.Getenv(strings.ToUpper(m.name+"_"+tool)+"_VERSION")), chosen[tool]...) {
			if path := m.inVersion(filepath.Join(versions, pick(versions, want)), versions); path != "" {
				return path
			}
		}
		for _, v := range list(versions) {
			if path := m.inVersion(filepath.Join(versions, v), versions); path != "" {
				all = append(all, paths.Real(path))
			}
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 1 {
		return all[0]
	}
	return ""
}

// inVersion returns the program in one version of a tool, or "".
func (m manager) inVersion(version, versions string) string {
	for _, bin := range []string{"bin", "go/bin", ".npm/bin", ""} {
		if path := filepath.Join(version, bin, m.program); version != versions && executable(path) {
			return path
		}
	}
	return ""
}

// chosen returns the versions that asdf or mise would take of each tool, the best first.
func (m manager) chosen() map[string][]string {
	all := map[string][]string{}
	home, _ := os.UserHomeDir() // without a home folder it has no files
	dirs := append(upward(m.project), home)
	for _, dir := range dirs {
		if m.name == "mise" {
			for _, name := range []string{"mise.local.toml", "mise.toml", ".mise.toml", "mise/config.toml", ".config/mise.toml", ".config/mise/config.toml"} {
				if text, err := readSmall(filepath.Join(dir, name)); err == nil {
					miseTools(text, all)
				}
			}
		}
		if text, err := readSmall(filepath.Join(dir, ".tool-versions")); err == nil {
			toolVersions(text, all)
		}
	}
	for tool, alias := range map[string]string{"nodejs": "node", "golang": "go"} { // asdf's name: mise's name
		all[alias] = append(all[alias], all[tool]...)
	}
	return all
}

// toolVersions reads .tool-versions: a tool and its versions on each line.
func toolVersions(text string, into map[string][]string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 {
			into[words[0]] = append(into[words[0]], words[1:]...)
		}
	}
}

// miseTools reads the table "tools" of a mise configuration. It finds only versions that are strings.
func miseTools(text string, into map[string][]string) {
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = strings.TrimSuffix(strings.TrimPrefix(line, "["), "]") == "tools"
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !in || !ok || strings.HasPrefix(key, "#") {
			continue
		}
		key = strings.TrimPrefix(strings.Trim(strings.TrimSpace(key), `"'`), "core:")
		// Quoted strings are versions, whatever the syntax around them.
		for i, part := range strings.FieldsFunc(" "+value, func(r rune) bool { return r == '"' || r == '\'' }) {
			if i%2 == 1 {
				into[key] = append(into[key], part)
			}
		}
	}
}

// volta finds the program in the Node that package.json pins, or in the user's default Node.
func (m manager) volta() string {
	for _, dir := range append(upward(m.project), "") {
		var pin struct {
			Volta struct {
				Node string `json:"node"`
			} `json:"volta"`
			Node struct {
				Runtime string `json:"runtime"`
			} `json:"node"`
		}
		file := filepath.Join(dir, "package.json")
		if dir == "" {
			file = filepath.Join(m.root, "tools/user/platform.json")
		}
		text, err := readSmall(file)
		if err != nil || json.Unmarshal([]byte(text), &pin) != nil {
			continue
		}
		images := filepath.Join(m.root, "tools/image/node")
		version := pick(images, cmp.Or(pin.Volta.Node, pin.Node.Runtime))
		if path := filepath.Join(images, version, "bin", m.program); version != "" && executable(path) {
			return path
		}
	}
	return ""
}

// upward lists an absolute folder and the folders above it.
func upward(dir string) []string {
	all := []string{filepath.Clean(dir)}
	for filepath.Dir(dir) != dir && len(all) < 100 {
		dir = filepath.Dir(dir)
		all = append(all, dir)
	}
	return all
}

// fileWords returns the words of a version file, without comments.
func fileWords(path string) []string {
	text, err := readSmall(path)
	if err != nil {
		return nil
	}
	var all []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		all = append(all, strings.FieldsFunc(line, func(r rune) bool { return r <= ' ' || r == ':' })...)
	}
	return all
}

// pick returns the installed version in dir that want means: exactly that one, or the newest one with that prefix. It
// never leaves dir; "" if there is none.
func pick(dir, want string) string {
	if want == "" || !filepath.IsLocal(want) || filepath.Clean(want) == "." {
		return ""
	}
	if exists(filepath.Join(dir, want)) {
		return want
	}
	best := ""
	for _, name := range list(dir) {
		if (want == "latest" || strings.HasPrefix(name, want+".")) && newer(name, best) {
			best = name
		}
	}
	return best
}

// newer compares versions number by number. A part that is no number comes first.
func newer(a, b string) bool {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		n, errX := strconv.Atoi(x)
		m, errY := strconv.Atoi(y)
		if errX != nil {
			n = -1
		}
		if errY != nil {
			m = -1
		}
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(x, y))
	}) > 0
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// list returns the names in a folder, or nothing if it cannot be read.
func list(dir string) []string {
	entries, _ := os.ReadDir(dir) // unreadable: then its contents are unknown
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
