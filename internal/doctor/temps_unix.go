//go:build unix

package doctor

import (
	"os"
	"path/filepath"
)

// commonTemps are patterns of temp folders: of the system, of the session, of
// macOS for each user, of nix-shell and of this user's other shells.
func commonTemps() []string {
	temps := []string{"/tmp", "/var/tmp", "/private/tmp", "/var/folders/*/*/T", "/tmp/nix-shell*", "/run/user/*"}
	for _, name := range []string{"TMP", "TEMP", "XDG_RUNTIME_DIR"} {
		if v := os.Getenv(name); v != "" {
			temps = append(temps, v)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		temps = append(temps, filepath.Join(home, "tmp"), filepath.Join(home, ".tmp"), filepath.Join(home, ".cache", "tmp"))
	}
	return temps
}

// tempNames are the variables that name the temp folder, in their order.
func tempNames() []string { return []string{"TMPDIR", "TMP", "TEMP"} }
