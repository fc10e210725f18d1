//go:build unix

package audit

import (
	"os"
	"syscall"
)

// openLog opens a file of the log; it follows no link and waits for no pipe.
func openLog(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
}
