package paths

import (
	"path/filepath"
	"strings"
)

// localPath returns the path for a URI's host and path: /C:/x, or //server/share.
func localPath(host, path string) (string, bool) {
	if host != "" {
		return `\\` + host + filepath.FromSlash(path), true
	}
	path = filepath.FromSlash(strings.TrimPrefix(path, "/"))
	if len(path) >= 2 && path[1] == ':' { // editors disagree on its case
		path = strings.ToUpper(path[:1]) + path[1:]
	}
	return path, filepath.IsAbs(path)
}
