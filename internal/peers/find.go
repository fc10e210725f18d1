package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// minNode is the first major version of Node that runs every peer: the
// conformance suite uses fs.globSync.
const minNode = 22

// findPackage finds a program of an npm package: installed below e2e/peers, or globally as command ("" if the package
// has no usable one). It must be the pinned version, because another version proves nothing here.
func findPackage(root, name, script, command string) (Finding, error) {
	want, err := pinned(filepath.Join(root, "e2e", "peers", "package.json"), name)
	if err != nil {
		return Finding{}, err
	}
	dirs := []string{filepath.Join(root, "e2e", "peers", "node_modules", filepath.FromSlash(name))}
	if path, err := exec.LookPath(command); command != "" && err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(filepath.Dir(target)))
		}
	}
	err = fmt.Errorf("%s %s is not installed", name, want)
	for _, dir := range dirs {
		have, readErr := packageVersion(dir)
		if readErr != nil {
			continue
		}
		if have == want {
			return Finding{Path: filepath.Join(dir, filepath.FromSlash(script)), Version: have}, nil
		}
		err = fmt.Errorf("%s is version %s, the tests are written for %s", dir, have, want)
	}
	return Finding{}, err
}

// findNative finds an agent's program for this platform below e2e/peers/agents, where npm installed the version in
// its lock file.
func findNative(root, pattern string) (Finding, error) {
	dir := filepath.Join(root, "e2e", "peers", "agents", "node_modules")
	found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no %s in %s", pattern, dir)
	}
	if err != nil {
		return Finding{}, err
	}
	return Finding{Path: found[0]}, nil
}

// pinned reads a dependency's exact version from a package.json.
func pinned(file, name string) (string, error) {
	var manifest struct {
		Dependencies    map[string]string `json:"dependencies"`
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := readJSON(file, &manifest); err != nil {
		return "", err
	}
	for _, list := range []map[string]string{manifest.Dependencies, manifest.DevDependencies} {
		if v := list[name]; v != "" {
			return v, nil
		}
	}
	return "", fmt.Errorf("%s pins no version of %s", file, name)
}

// packageVersion reads the version of the package installed in dir.
func packageVersion(dir string) (string, error) {
	var manifest struct {
		Version string `json:"version"`
	}
	err := readJSON(filepath.Join(dir, "package.json"), &manifest)
	return manifest.Version, err
}

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// findNode returns the machine's Node if it is new enough, else the pinned one below e2e/peers/node.
func findNode(root string) (Finding, error) {
	own, err := findProgram("--version", []string{"node", "nodejs"}, nil)
	if err == nil && major(own.Version) >= minNode {
		return own, nil
	}
	reason := fmt.Errorf("no Node of version %d or newer", minNode)
	if err == nil {
		reason = fmt.Errorf("%s is version %s, too old: %d is needed", own.Path, own.Version, minNode)
	}
	matches, err := filepath.Glob(filepath.Join(root, "e2e", "peers", "node", "node_modules", "node-*", "bin", "node"))
	if err != nil {
		return Finding{}, err
	}
	for _, path := range matches {
		if v, err := versionOf(path, "--version"); err == nil && major(v) >= minNode {
			return Finding{Path: path, Version: v}, nil
		}
	}
	return Finding{}, reason
}

// major returns the first number of "v22.23.3"; 0 if there is none.
func major(version string) int {
	first, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// findEsbuild returns the executable itself instead of npm's JavaScript wrapper, so that it needs no Node.
func findEsbuild(root string) (Finding, error) {
	web := filepath.Join(root, "web")
	want, err := pinned(filepath.Join(web, "package.json"), "esbuild")
	if err != nil {
		return Finding{}, err
	}
	for _, pattern := range []string{"*/bin/esbuild", "*/esbuild.exe"} {
		matches, err := filepath.Glob(filepath.Join(web, "node_modules", "@esbuild", filepath.FromSlash(pattern)))
		if err != nil {
			return Finding{}, err
		}
		for _, path := range matches {
			if have, err := versionOf(path, "--version"); err == nil && have == want {
				return Finding{Path: path, Version: have}, nil
			}
		}
	}
	return Finding{}, fmt.Errorf("esbuild %s is not installed", want)
}

func chromiumNames() []string {
	return []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}
}

// chromiumPlaces are where each platform's installers put it, outside PATH.
func chromiumPlaces() []string {
	return []string{
		"/usr/lib/chromium/chromium",
		"/snap/bin/chromium",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
		filepath.Join(os.Getenv("ProgramFiles"), `Google\Chrome\Application\chrome.exe`),
	}
}

// findLibrary returns the file of a library for Emacs in the Debian package of its name.
func findLibrary(name string) (Finding, error) {
	packages, err := filepath.Glob("/usr/share/emacs/site-lisp/elpa-src/" + name + "-[0-9]*/" + name + ".el")
	if err != nil {
		return Finding{}, err
	}
	if len(packages) == 0 {
		return Finding{}, fmt.Errorf("there is no package elpa-%s", name)
	}
	path := packages[len(packages)-1]
	return Finding{Path: path, Version: strings.TrimPrefix(filepath.Base(filepath.Dir(path)), name+"-")}, nil
}

// findEglot returns the library of Debian's package, else the one in Emacs itself.
func findEglot() (Finding, error) {
	if f, err := findLibrary("eglot"); err == nil {
		return f, nil
	}
	emacs, err := findProgram("--version", []string{"emacs"}, nil)
	if err != nil {
		return Finding{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, emacs.Path, "-Q", "--batch", "--eval", `(princ (or (locate-library "eglot") ""))`).Output()
	if err != nil || !filepath.IsAbs(string(out)) {
		return Finding{}, fmt.Errorf("Emacs %s has no eglot", emacs.Version)
	}
	return Finding{Path: string(out), Version: emacs.Version}, nil
}

// findProgram finds an ordinary program and asks for its version.
func findProgram(flag string, names, places []string) (Finding, error) {
	path, err := lookPath(names, places)
	if err != nil {
		return Finding{}, err
	}
	version, err := versionOf(path, flag)
	if err != nil {
		return Finding{}, fmt.Errorf("%s does not run: %w", path, err)
	}
	return Finding{Path: path, Version: version}, nil
}

// versionOf runs path with flag and returns the word that starts with a digit, or with v and a digit.
func versionOf(path, flag string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, flag).Output()
	if err != nil {
		return "", err
	}
	for word := range strings.FieldsSeq(string(out)) {
		if digits := strings.TrimPrefix(word, "v"); digits[:min(1, len(digits))] >= "0" && digits[:min(1, len(digits))] <= "9" {
			return word, nil
		}
	}
	return "", errors.New("it names no version")
}

// findKakoune finds Kakoune. Debian's calls its version unknown.
func findKakoune() (Finding, error) {
	path, err := lookPath([]string{"kak"}, nil)
	if err != nil {
		return Finding{}, err
	}
	version, err := versionOf(path, "-version")
	if err != nil {
		version = "unknown"
	}
	return Finding{Path: path, Version: version}, nil
}

// findPathogen finds Debian's package.
func findPathogen() (Finding, error) {
	const path = "/usr/share/vim-pathogen/autoload/pathogen.vim"
	source, err := os.ReadFile(path)
	if err != nil {
		return Finding{}, errors.New("no pathogen.vim in /usr/share/vim-pathogen")
	}
	_, version, _ := strings.Cut(string(source), "Version:")
	version, _, _ = strings.Cut(version, "\n")
	return Finding{Path: path, Version: strings.TrimSpace(version)}, nil
}

// findClaude finds Claude Code's own program. It is in a separate package for each platform; npm installs the right
// one.
func findClaude(root string) (Finding, error) {
	f, err := findPackage(root, "@anthropic-ai/claude-code", "package.json", "")
	if err != nil {
		return f, err
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(f.Path)), "claude-code-*", "claude*"))
	if err == nil && len(found) == 0 {
		err = errors.New("the package of this platform is not installed")
	}
	if err != nil {
		return f, err
	}
	f.Path = found[0]
	return f, nil
}
