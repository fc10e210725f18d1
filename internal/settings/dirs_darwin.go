package settings

import (
	"fmt"
	"os"
	"path/filepath"
)

func stateHome() (string, error) {
	if dir, ok := absEnv("XDG_STATE_HOME"); ok {
		return dir, nil
	}
	return home("Library", "Application Support")
}

// runDirs returns the folders for sockets. The last one serves when the state folder's name is too long for a socket.
func runDirs(state string) []string {
	return []string{filepath.Join(state, "run"), fmt.Sprintf("/tmp/pollux-%d", os.Getuid())}
}
