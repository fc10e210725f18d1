package gemini

import (
	"errors"
	"os"
	"strings"
)

// openWithoutWaiting refuses the namespace of devices and pipes.
func openWithoutWaiting(path string) (*os.File, error) {
	if s := strings.ReplaceAll(path, "/", `\`); strings.HasPrefix(s, `\\.\`) || strings.HasPrefix(s, `\\?\`) {
		return nil, errors.New("this is a device path, not a file's")
	}
	return os.Open(path)
}
