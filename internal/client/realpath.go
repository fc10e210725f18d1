package client

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/paths"
)

// validate returns why a folder is not in a workspace, nil when it is; err is a fault of the CLI itself.
func validate(w *World, workspace string, given bool) (mismatch, err error) {
	if !given {
		return fmt.Errorf(msgFailed, ""), nil
	}
	if workspace == "" {
		return errors.New(msgNoFolder), nil
	}
	parts := strings.Split(workspace, string(os.PathListSeparator))
	roots := make([]string, len(parts))
	for i, part := range parts {
		if roots[i], err = realPath(w.Dir, part); err != nil {
			return nil, err
		}
	}
	cwd, err := realPath(w.Dir, w.Dir)
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		if paths.Within(root, cwd) {
			return nil, nil
		}
	}
	return errors.New(msgMismatch + strings.Join(roots, ", ")), nil
}

// realPath resolves a path as the CLI does: it decodes file:// and percent escapes, starts a relative path at cwd,
// and follows links in the part of the path that exists.
func realPath(cwd, path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("Invalid path: %s", strings.ReplaceAll(path, "\x00", `\0`))
	}
	path = discovery.DecodePercent(fileURL(path))
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("a path with a zero byte, which makes the CLI fail")
	}
	return resolve(filepath.Clean(path), nil)
}

// fileURL turns file:///x into /x, and returns any other text unchanged.
func fileURL(path string) string {
	if !strings.HasPrefix(path, "file://") {
		return path
	}
	u, err := url.Parse(path)
	if err != nil || u.Host != "" && !strings.EqualFold(u.Host, "localhost") || strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
		return path
	}
	return fileURLPath(filepath.Clean("/" + u.Path))
}

// resolve follows links in the part of the path that exists.
func resolve(path string, visited []string) (string, error) {
	if slices.Contains(visited, path) {
		return "", fmt.Errorf("Infinite recursion detected in robustRealpath: %s", path)
	}
	visited = append(visited, path)
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !missing(err) {
		return "", err
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		return resolve(filepath.Clean(target), visited)
	}
	if err != nil && !missing(err) {
		return "", err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	above, err := resolve(parent, visited)
	if err != nil {
		return "", err
	}
	return filepath.Join(above, filepath.Base(path)), nil
}

func missing(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EISDIR) ||
		errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.ENOTDIR)
}
