package discovery

import (
	"os"
	"strings"
)

// TempDir returns TempDirOf this environment.
func TempDir() string { return TempDirOf(os.Getenv) }

// TempDirOf returns Node's os.tmpdir() for an environment: an empty variable counts as
// unset, and a trailing backslash is removed unless a drive stands before it.
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

// TempVariable returns the first set variable that names the temporary folder.
const TempVariable = "TEMP"
