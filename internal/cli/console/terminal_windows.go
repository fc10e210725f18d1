package console

import (
	"os"

	"golang.org/x/sys/windows"
)

// isTerminal also returns false for consoles that do not understand colour codes.
func isTerminal(f *os.File) bool {
	var mode uint32
	err := windows.GetConsoleMode(windows.Handle(f.Fd()), &mode)
	return err == nil && mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0
}
