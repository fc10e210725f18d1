//go:build unix

package gemini

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// F-2: a FIFO that nobody writes to does not hold the answer up, nor does a device that never ends.
func TestOldFileDoesNotWait(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, "/dev/zero"} {
		if _, _, err := readOld(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
