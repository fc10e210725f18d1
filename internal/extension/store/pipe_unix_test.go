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
