package settings

import (
	"fmt"
	"os"
)

// usualState is the folder for state, below a home folder.
const usualState = "Library/Application Support"

func stateHome() (string, error) {
	if dir, ok := absEnv("XDG_STATE_HOME"); ok {
		return dir, nil
	}
	return home(usualState)
}

// runDirs returns the folders for sockets. The last one serves when the state folder's name is too long for a socket.
func runDirs(state string) []string {
	return []string{pointers(state), fmt.Sprintf("/tmp/pollux-%d", os.Getuid())}
}
