package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// Find looks a program up in PATH that pollux starts of its own accord, with
// all rights of the user. Folders that a project can fill are passed over:
// relative ones, those in the project that the working folder belongs to, and
// node_modules anywhere. A name with a separator in it is not looked up.
func Find(name string) (string, error) {
	if filepath.Base(name) != name {
		return exec.LookPath(name)
	}
	project, passed := projectOf(workingFolder()), ""
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if dir == "" || !filepath.IsAbs(dir) {
			continue
		}
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if !fillable(dir, project) && !fillable(path, project) {
			return path, nil
		}
		passed = path
	}
	if passed != "" {
		return "", fmt.Errorf("%q is found only at %q, where the project that you are in can put it; install it outside, or start pollux from another folder: %w", name, passed, exec.ErrNotFound)
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// Called is the absolute path of this program as it was called: a package manager's link to it stays the link, which leads to
// the next version after an upgrade; that is what settings of editors and agents should name. A link that a project can fill is followed.
func Called() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path, err := Find(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil || fillable(path, projectOf(workingFolder())) {
		return self, nil
	}
	link, err := os.Stat(path)
	if err != nil {
		return self, nil
	}
	if program, err := os.Stat(self); err != nil || !os.SameFile(link, program) {
		return self, nil
	}
	return path, nil
}

func workingFolder() string {
	dir, _ := os.Getwd() // removed: then nothing in it is found either
	return paths.Real(dir)
}

// fillable says whether a project can put a program at path, by its name or
// by where its links lead.
func fillable(path, project string) bool {
	for _, p := range []string{filepath.Clean(path), paths.Real(path)} {
		if project != "" && paths.Within(project, p) {
			return true
		}
	}
	return slices.Contains(strings.Split(filepath.ToSlash(filepath.Clean(path)), "/"), "node_modules")
}

// projectOf is the folder of the project that dir belongs to: the outermost
// one above it that looks like one, else dir itself. The home folder and what
// holds it are no project; then it is "".
func projectOf(dir string) string {
	home, _ := os.UserHomeDir() // without one every folder can be a project
	home = paths.Real(home)
	project := ""
	for at := dir; at != "" && filepath.Dir(at) != at && (home == "" || !paths.Within(at, home)); at = filepath.Dir(at) {
		if at == dir || looksLikeProject(at) {
			project = at
		}
	}
	return project
}

func looksLikeProject(dir string) bool {
	return slices.ContainsFunc([]string{".git", "package.json", "pyproject.toml", "go.mod", "Cargo.toml", ".gemini"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}
