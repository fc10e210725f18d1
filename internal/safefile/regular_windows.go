package safefile

import (
	"os"
	"strings"
)

const openFlags = 0

// OnDisk refuses an open file that the kernel makes up: Windows has none.
func OnDisk(*os.File) error { return nil }

// notMadeUp refuses the namespace of devices and pipes.
func notMadeUp(path string) error {
	if s := strings.ReplaceAll(path, "/", `\`); strings.HasPrefix(s, `\\.\`) || strings.HasPrefix(s, `\\?\`) {
		return &notRegular{"is a device path, not a file's"}
	}
	return nil
}
