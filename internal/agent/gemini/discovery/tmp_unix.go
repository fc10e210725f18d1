//go:build unix

package discovery

import (
	"os"
	"path/filepath"
	"strings"
)

// TempDirOf is what Node's os.tmpdir() gives in an environment: an empty
// variable counts as unset, and one slash at the end goes. It may be relative.
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

// TempDir is TempDirOf this environment, made absolute.
func TempDir() string {
	dir := TempDirOf(os.Getenv)
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// TempVariable is the first variable that names the temporary folder.
const TempVariable = "TMPDIR"
