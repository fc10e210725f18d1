package discovery

import (
	"os"
	"strings"
)

// TempDir is TempDirOf this environment.
func TempDir() string { return TempDirOf(os.Getenv) }

// TempDirOf is what Node's os.tmpdir() gives in an environment: an empty
// variable counts as unset, and a backslash at the end goes unless a drive stands before it.
func TempDirOf(getenv func(string) string) string {
	first := func(names ...string) string {
		for _, name := range names {
			if v := getenv(name); v != "" {
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

// TempVariable is the first variable that names the temporary folder.
const TempVariable = "TEMP"
