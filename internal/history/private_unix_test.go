//go:build unix

package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestPrivate(t *testing.T) { // SPEC §11.3
	dir := filepath.Join(t.TempDir(), "history")
	h := start(t, dir, nil)
	h.add(entry("A", time.Now()))
	finish(t, h)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := os.Symlink(dir, dir+"-link"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir+"-link", nil); err == nil {
		t.Error("a symlink was taken for the history's folder")
	}
}

// Something else in place of an entry counts as damaged, and nobody waits for it.
func TestNoEntry(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		h := start(t, t.TempDir(), nil)
		h.add(entry("GOOD", time.Now()))
		finish(t, h)
		path := filepath.Join(h.dir, fmt.Sprintf("%013d-BAD.entry", time.Now().UnixMilli()))
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		if e, err := h.Get("BAD"); !errors.Is(err, ErrNoEntry) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if err := put(path); err != nil { // Get has removed it
			t.Fatal(err)
		}
		if got := ids(t, h); !slices.Equal(got, []string{"GOOD"}) {
			t.Errorf("%s: listed %q", name, got)
		}
	}
}
