package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA)
	return err == nil
}

// opener is the command that opens a file in the user's browser; ok is false
// in a session without a display.
func opener() (command []string, ok bool) {
	if os.Getenv("SSH_CONNECTION") != "" {
		return nil, false
	}
	return []string{"open"}, true
}
