//go:build unix

package clisettings

import (
	"os"
	"path/filepath"
	"syscall"
)

// homeVariable names the home folder.
const homeVariable = "HOME"

// rootsOwn says that root alone can have written a file and put it where it is.
func rootsOwn(file string) bool {
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
