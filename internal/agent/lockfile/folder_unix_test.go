//go:build unix

package lockfile

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A FIFO in place of the folder of lock files is not waited for.
func TestNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ide")
	if err := syscall.Mkfifo(dir, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := sweep(dir, func([]byte) (int, bool) { return 0, true }); len(got) > 0 {
		t.Errorf("removed %v", got)
	}
	if got := (Kind{}).Look(dir, World{}, ""); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}
