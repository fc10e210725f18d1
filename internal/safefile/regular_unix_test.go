//go:build unix

package safefile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A file whose name came from somebody else is checked before it is opened.
func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(at(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("empty", nil)
	put("full", bytes.Repeat([]byte("x"), 100))
	put("over", bytes.Repeat([]byte("x"), 101))
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "full", "tofifo": "fifo", "round": "round", "nowhere": "none", "tozero": "/dev/zero"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{
		"empty": nil, "full": nil, "link": nil, "over": ErrTooBig, "fifo": ErrNotRegular, "tofifo": ErrNotRegular,
		"tozero": ErrNotRegular, "": ErrNotRegular, "none": fs.ErrNotExist, "nowhere": fs.ErrNotExist, "round": syscall.ELOOP, "full/x": syscall.ENOTDIR,
	} {
		data, _, err := ReadRegular(at(name), 100)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err == nil && name != "empty" && len(data) != 100 {
			t.Errorf("%s: %d bytes", name, len(data))
		}
	}
}

// A file that is written continuously is either refused or read as it was at one moment.
func TestReadRegularWhileItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<15)
	if err := os.WriteFile(path, a, 0o600); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = Write(path, [][]byte{b, a}[i%2], &Options{Volatile: true})
		}
	}()
	read := 0
	for end := time.Now().Add(time.Minute); read < 200 && time.Now().Before(end); {
		data, _, err := ReadRegular(path, 1<<20)
		if err != nil && !errors.Is(err, ErrChanging) {
			t.Fatal(err)
		}
		if err == nil {
			read++
			if !bytes.Equal(data, a) && !bytes.Equal(data, b) {
				t.Fatalf("%d bytes of both", len(data))
			}
		}
	}
	close(stop)
	<-stopped
	if read == 0 {
		t.Error("it could never be read")
	}
}
