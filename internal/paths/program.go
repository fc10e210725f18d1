package paths

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Program looks up in PATH a program that pollux starts by itself, with all of the user's permissions. It skips folders
// that a project can fill: relative ones, folders in the project around the working folder, and any node_modules. A
// name with a separator is not looked up in PATH.
func Program(name string) (string, error) {
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

// Called returns the absolute path by which this program was called. It keeps a package manager's link, because after
// an upgrade the link leads to the next version; settings of editors and agents should name the link. It resolves a
// link that a project can fill.
func Called() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path, err := Program(os.Args[0])
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
	dir, _ := os.Getwd() // fails if it was removed; then nothing is found in it either
	return Real(dir)
}

// fillable reports whether a project can put a program at path, by its name or by the target of its links.
func fillable(path, project string) bool {
	for _, p := range []string{filepath.Clean(path), Real(path)} {
		if project != "" && Within(project, p) {
			return true
		}
	}
	return slices.Contains(strings.Split(filepath.ToSlash(filepath.Clean(path)), "/"), "node_modules")
}

// projectOf returns the project folder around dir: the outermost folder that looks like a project, else dir itself.
// It returns "" for the home folder and the folders above it, which are never projects.
func projectOf(dir string) string {
	home, _ := os.UserHomeDir() // without a home folder any folder can be a project
	home = Real(home)
	project := ""
	for at := dir; at != "" && filepath.Dir(at) != at && (home == "" || !Within(at, home)); at = filepath.Dir(at) {
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
