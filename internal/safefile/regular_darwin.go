package safefile

import (
	"os"
	"syscall"
)

// NoWait are flags for os.OpenFile that keep a FIFO or terminal at a file's place from holding the opener up or becoming its own.
const NoWait = syscall.O_NONBLOCK | syscall.O_NOCTTY

// OnDisk refuses an open file that the kernel makes up: macOS has none.
func OnDisk(*os.File) error { return nil }

func notMadeUp(string) error { return nil }
