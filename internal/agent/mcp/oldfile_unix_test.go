//go:build unix

package mcp_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// F-2: what is no file of a disk does not hold the answer up: neither a FIFO that nobody writes to, nor a device that
// never ends, nor the kernel's log, which root can open and which then waits for news.
func TestOldFileDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "s")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	link := func(name, target string) string {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	paths := []string{fifo, socket, dir, "/dev/zero", "/dev/tty", link("tofifo", fifo), link("tozero", "/dev/zero")}
	for _, path := range []string{"/proc/kmsg", "/proc/self/environ", "/proc/self/mem", "/proc/self/stat", "/proc/meminfo", "/sys/kernel/uevent_seqnum", "/proc/self/fd/0"} {
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path, link("to"+filepath.Base(path), path))
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		done := make(chan error, 1)
		go func() { _, _, err := mcp.ReadOld(path); done <- err }()
		select {
		case err := <-done:
			if !errors.Is(err, safefile.ErrNotRegular) && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", path, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it waits", path)
		}
	}
}
