// Package paths compares paths, follows their links, and finds programs that no project can put in the way. It changes
// nothing, and every function is safe for concurrent use.
package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// FoldCase reports whether names that differ only in case name the same file, as they do by default on macOS and
// Windows.
func FoldCase() bool { return foldCase }

var foldCase = map[string]bool{"darwin": true, "windows": true}[runtime.GOOS]

// Same reports whether two clean paths name the same place. It compares only their text.
func Same(a, b string) bool { return a == b || foldCase && strings.EqualFold(a, b) }

// Within reports whether path is root or lies below it. It compares only their text; the caller has made both
// absolute and clean, and resolved their links.
func Within(root, path string) bool {
	if Same(root, path) {
		return true
	}
	if !strings.HasSuffix(root, string(filepath.Separator)) {
		root += string(filepath.Separator)
	}
	return len(path) > len(root) && Same(root, path[:len(root)])
}

// Real resolves the links of a path. A path that cannot be resolved is only cleaned.
func Real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Follow resolves an absolute path with readlink, which is an error for what is no link. It calls link for each symbolic
// link on the way, with its target. Only links that lead in a circle are an error.
func Follow(readlink func(string) (string, error), path string, link func(path, to string)) (string, error) {
	done, rest := "/", path
	for range 1000 {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			return done, nil
		}
		name, after, _ := strings.Cut(rest, "/")
		next := filepath.Join(done, name)
		to, err := readlink(next)
		if err != nil { // not a link; Join has resolved dots
			done, rest = next, after
			continue
		}
		link(next, to)
		if !filepath.IsAbs(to) {
			to = filepath.Join(done, to)
		}
		done, rest = "/", to+"/"+after
	}
	return "", fmt.Errorf("the symbolic links of %q lead in a circle", path)
}

// ErrDangling: a link has no target. What a write would create behind it is unknown.
var ErrDangling = errors.New("a link that leads nowhere")

// Resolve follows the links in the existing part of path, and appends the rest. path is absolute and clean. A
// dangling link is an ErrDangling; any other error is from package os.
func Resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	exists, rest := existing(path)
	real, err = filepath.EvalSymlinks(exists)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%q: %w", exists, ErrDangling)
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(real, rest), nil
}

// existing splits a path before its first missing name.
func existing(path string) (exists, rest string) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	exists = top
	names := strings.Split(strings.TrimPrefix(path, top), string(filepath.Separator))
	for i, n := range names {
		next := filepath.Join(exists, n)
		if _, err := os.Lstat(next); err != nil {
			return exists, filepath.Join(names[i:]...)
		}
		exists = next
	}
	return exists, ""
}
