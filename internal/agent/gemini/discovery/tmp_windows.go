package discovery

import (
	"os"
	"strings"
)

// TempDir is what Node's os.tmpdir() gives in this environment: an empty
// variable counts as unset, and a backslash at the end goes unless a drive stands before it.
func TempDir() string {
	first := func(names ...string) string {
		for _, name := range names {
			if v := os.Getenv(name); v != "" {
				return v
			}
		}
		return ""
	}
	dir := first("TEMP", "TMP")
	if dir == "" {
		dir = first("SystemRoot", "windir") + `\temp`
	}
	if len(dir) > 1 && !strings.HasSuffix(dir, `:\`) {
		dir = strings.TrimSuffix(dir, `\`)
	}
	return dir
}
