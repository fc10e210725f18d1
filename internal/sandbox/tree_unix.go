//go:build unix

package sandbox

import (
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/paths"
)

// A tree is the file system that a plan is made for: "" is this machine's; a folder is another machine's, for tests.
// Paths are absolute in it.
type tree string

func (t tree) exists(path string) bool {
	_, err := t.lstat(path)
	return err == nil
}

// exists says whether this machine has a path.
func exists(path string) bool { return tree("").exists(path) }

func (t tree) lstat(path string) (os.FileInfo, error) { return os.Lstat(string(t) + path) }

func (t tree) readlink(path string) (string, error) { return os.Readlink(string(t) + path) }

// isDir says whether a path is a folder. The path must have no links left.
func (t tree) isDir(path string) bool {
	info, err := t.lstat(path)
	return err == nil && info.IsDir()
}

// list returns the names in a folder, or nothing if it cannot be read.
func (t tree) list(path string) []string {
	entries, _ := os.ReadDir(string(t) + path) // unreadable: then its contents are unknown
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// canonical resolves the symbolic links of a path. A path that does not exist stays as it is.
func (t tree) canonical(path string) string {
	if real, err := t.evalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// evalSymlinks is filepath.EvalSymlinks within the tree.
func (t tree) evalSymlinks(path string) (string, error) {
	if t == "" {
		return filepath.EvalSymlinks(path)
	}
	real, err := paths.Follow(t.readlink, path, func(string, string) {})
	if err == nil {
		_, err = t.lstat(real)
	}
	return real, err
}
