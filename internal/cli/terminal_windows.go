package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// isTerminal also says no to consoles that do not understand colour codes.
func isTerminal(f *os.File) bool {
	var mode uint32
	err := windows.GetConsoleMode(windows.Handle(f.Fd()), &mode)
	return err == nil && mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0
}

// opener is the command that opens a file in the user's browser; ok is false
// in a session without a display.
func opener() (command []string, ok bool) {
	if os.Getenv("SSH_CONNECTION") != "" {
		return nil, false
	}
	return []string{"rundll32", "url.dll,FileProtocolHandler"}, true
}
