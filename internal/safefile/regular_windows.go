package safefile

import (
	"os"
	"strings"
)

// NoWait are flags for os.OpenFile, so that a pipe does not block. There are none: opening never blocks on Windows.
const NoWait = 0

// OnDisk refuses an open file that the kernel generates: Windows has none.
func OnDisk(*os.File) error { return nil }

// notMadeUp refuses paths in the namespace of devices and pipes.
func notMadeUp(path string) error {
	if s := strings.ReplaceAll(path, "/", `\`); strings.HasPrefix(s, `\\.\`) || strings.HasPrefix(s, `\\?\`) {
		return &notRegular{"is a device path, not a file's"}
	}
	return nil
}
