package safefile

import (
	"os"
	"strings"
)

// NoWait are flags for os.OpenFile that keep a pipe from holding the opener up: none, for here nothing waits.
const NoWait = 0

// OnDisk refuses an open file that the kernel makes up: Windows has none.
func OnDisk(*os.File) error { return nil }

// notMadeUp refuses the namespace of devices and pipes.
func notMadeUp(path string) error {
	if s := strings.ReplaceAll(path, "/", `\`); strings.HasPrefix(s, `\\.\`) || strings.HasPrefix(s, `\\?\`) {
		return &notRegular{"is a device path, not a file's"}
	}
	return nil
}
