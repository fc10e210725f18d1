package settings

import (
	"fmt"
	"os"
	"path/filepath"
)

// usualState is the folder for state, below a home folder.
const usualState = ".local/state"

func stateHome() (string, error) {
	if dir, ok := absEnv("XDG_STATE_HOME"); ok {
		return dir, nil
	}
	return home(usualState)
}

// runDirs returns the folders for sockets. A terminal without XDG_RUNTIME_DIR (su, cron, some ssh) must still find a
// companion that has it, so its usual place is included. The last one serves when the state folder's name is too long
// for a socket.
func runDirs(state string) []string {
	uid := os.Getuid()
	usual := fmt.Sprintf("/run/user/%d", uid)
	var dirs []string
	if dir, ok := absEnv("XDG_RUNTIME_DIR"); ok {
		dirs = append(dirs, filepath.Join(dir, "pollux"))
		if dir == usual {
			usual = ""
		}
	}
	dirs = append(dirs, pointers(state), fmt.Sprintf("/tmp/pollux-%d", uid))
	if usual != "" {
		if _, err := os.Stat(usual); err == nil {
			dirs = append(dirs, filepath.Join(usual, "pollux"))
		}
	}
	return dirs
}
