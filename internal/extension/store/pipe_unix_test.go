//go:build unix

package store

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPipes: reading never blocks on a pipe in place of any file or folder. Its neighbours can be listed, installed
// and removed as usual.
func TestPipes(t *testing.T) {
	home := t.TempDir()
	pipe := func(elem ...string) string {
		path := filepath.Join(append([]string{home}, elem...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	extensions := filepath.Join(home, ".gemini", "extensions")
	target := pipe("pipe")
	write(filepath.Join(extensions, "linked", ".gemini-extension-install.json"), `{"source": "`+target+`", "type": "link"}`)
	write(filepath.Join(extensions, "cloned", "gemini-extension.json"), `{"name": "cloned", "version": "1.0.0"}`)
	pipe(".gemini", "extensions", "cloned", ".git", "HEAD")
	pipe(".gemini", "pollux", "records", "cloned.tree.json")
	pipe(".gemini", "extension_integrity.json")
	source := filepath.Join(home, "source")
	write(filepath.Join(source, "gemini-extension.json"), `{"name": "x", "version": "1.0.0"}`)

	done := make(chan struct{})
	go func() {
		defer close(done)
		s, err := Open(&Options{Home: home, WorkDir: home})
		if err != nil {
			t.Error(err)
			return
		}
		if err := perform(s, "install", source); err != nil {
			t.Errorf("install: %v", err)
		}
		all, err := s.List()
		if err != nil || len(all) != 3 {
			t.Errorf("%d extensions are listed: %v", len(all), err)
		}
		for _, x := range all {
			x.InstalledBy()
			if x.Name == "linked" && x.Problem == "" {
				t.Error("a link to a pipe counts as an extension")
			}
			if err := s.Uninstall(t.Context(), x); err != nil {
				t.Errorf("uninstall %s: %v", x.Name, err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a writer")
	}
}

// TestReadReplaced: whatever takes a file's place while it is read, reading ends, and gives what a regular file held
// or an error.
func TestReadReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			for _, target := range []string{"pipe", "text", "/dev/zero", "."} {
				next := filepath.Join(dir, "next")
				if os.Symlink(target, next) != nil || os.Rename(next, path) != nil {
					t.Errorf("round %d: the link was not made", i)
				}
			}
		}
	}()
	for read := 0; ; read++ {
		data, err := readAtMost(path, 16)
		if err == nil && string(data) != "text" {
			t.Fatalf("read %d: %q", read, data)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestReadAtMost: the bound is exact, and neither an empty file nor a folder is a special case.
func TestReadAtMost(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int]bool{0: true, 15: true, 16: true, 17: false, 100_000: false} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if data, err := readAtMost(path, 16); fits != (err == nil) || fits && len(data) != size {
			t.Errorf("%d bytes: %d, %v", size, len(data), err)
		}
	}
	if _, err := readAtMost(t.TempDir(), 16); err == nil {
		t.Error("a folder was read")
	}
}
