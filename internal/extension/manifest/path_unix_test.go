//go:build unix

package manifest

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe, socket or device in place of a file is refused without waiting (SPEC E-4).
func TestSpecialFiles(t *testing.T) {
	dir, root := extension(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // a socket's path is short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	names := []string{"pipe", "socket"}
	if syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR|0o666, 1<<8|5) == nil { // only root may: /dev/zero
		names = append(names, "device")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, n := range names {
			if f, err := Open(root, n); err == nil {
				f.Close()
				t.Errorf("%s was opened", n)
			}
		}
		if _, err := ReadTree(dir); err == nil {
			t.Error("the tree with them was read")
		}
		os.Rename(filepath.Join(dir, "pipe"), filepath.Join(dir, FileName))
		if _, _, err := Load(dir); err == nil {
			t.Error("a pipe was read as a manifest")
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for a writer")
	}
}
