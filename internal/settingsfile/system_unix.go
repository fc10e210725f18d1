//go:build unix

package settingsfile

import (
	"os"
	"path/filepath"
	"syscall"
)

// HomeVariable is the environment variable of the user's home folder.
const HomeVariable = "HOME"

// RootsOwn reports whether only root can have written file and put it in place. Only then do settings for the whole
// machine count: anybody else could impose them on other users.
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
