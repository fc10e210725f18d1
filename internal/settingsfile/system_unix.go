//go:build unix

package settingsfile

import (
	"os"
	"path/filepath"
	"syscall"
)

// HomeVariable names the variable of the user's home folder.
const HomeVariable = "HOME"

// RootsOwn says whether root alone can have written file and put it where it is. Settings for the whole machine count
// only then: anybody else could hand them to other users.
func RootsOwn(file string) bool {
	for _, path := range []string{file, filepath.Dir(file)} {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
			return false
		}
	}
	return true
}
