//go:build unix

package history

import (
	"io/fs"
	"os"
	"path/filepath"
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
