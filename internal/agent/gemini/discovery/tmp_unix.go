//go:build unix

package discovery

import (
	"os"
	"path/filepath"
	"strings"
)

// TempDirOf returns Node's os.tmpdir() for an environment: an empty variable counts as
// unset, and one trailing slash is removed. The result may be relative.
func TempDirOf(getenv func(string) string) string {
	dir := "/tmp"
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		if v := getenv(name); v != "" {
			dir = v
			break
		}
	}
	if len(dir) > 1 {
		dir = strings.TrimSuffix(dir, "/")
	}
	return dir
}

// TempDir returns TempDirOf this environment, made absolute.
func TempDir() string {
	dir := TempDirOf(os.Getenv)
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// TempVariable returns the first set variable that names the temporary folder.
const TempVariable = "TMPDIR"
