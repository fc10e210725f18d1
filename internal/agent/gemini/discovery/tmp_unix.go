//go:build unix

package discovery

import (
	"os"
	"path/filepath"
	"strings"
)

// TempDir is what Node's os.tmpdir() gives in this environment, made absolute: an empty
// variable counts as unset, and one slash at the end goes.
func TempDir() string {
	dir := "/tmp"
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		if v := os.Getenv(name); v != "" {
			dir = v
			break
		}
	}
	if len(dir) > 1 {
		dir = strings.TrimSuffix(dir, "/")
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}
