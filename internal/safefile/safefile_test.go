package safefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func mustWrite(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, text string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != text {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, text)
	}
}

// onlyFile fails if dir contains anything but name.
func onlyFile(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != name {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for i, text := range []string{"", "one", strings.Repeat("long\n", 100_000), "two"} {
		if err := Write(path, []byte(text), &Options{Volatile: i%2 == 0}); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, text)
	}
	onlyFile(t, dir, "f")
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "d"), 0o700)
	for name, path := range map[string]string{
		"a folder":         filepath.Join(dir, "d"),
		"no parent folder": filepath.Join(dir, "none", "f"),
	} {
		if err := Write(path, nil, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want an error that names it", name, err)
		}
	}
	onlyFile(t, dir, "d")
}

// A reader sees one complete version, whatever the writers do (SPEC D-4).
func TestWriteIsAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	version := func(i int) []byte { return bytes.Repeat([]byte{'a' + byte(i)}, 50_000) }
	mustWrite(t, path, string(version(0)), 0o600)
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for range 30 {
				if err := Write(path, version(w), &Options{Volatile: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got, err := os.ReadFile(path)
		if err != nil || len(got) != 50_000 || bytes.Count(got, got[:1]) != len(got) {
			t.Fatalf("a torn file of %d bytes, %v", len(got), err)
		}
	}
	onlyFile(t, filepath.Dir(path), "f")
}

// WriteIn stays inside its root, even with links.
func TestWriteIn(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "sub"), 0o700)
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := WriteIn(root, filepath.Join("sub", "f"), []byte("x"), nil); err != nil {
		t.Error(err)
	}
	wantFile(t, filepath.Join(dir, "sub", "f"), "x")
	for _, name := range []string{filepath.Join("out", "f"), filepath.Join("..", "f"), filepath.Join("sub", "..", "..", "f")} {
		if err := WriteIn(root, name, []byte("x"), nil); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	onlyFile(t, outside, "")
}

func TestIsTemp(t *testing.T) {
	if !IsTemp(tempPrefix+"x") || IsTemp("main.go") {
		t.Error("temporary files are not told apart")
	}
}

func TestPrivateDirCreates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 { // the second time it exists
		if err := PrivateDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
}

func TestPrivateDirRefuses(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "file"), "", 0o600)
	os.Symlink(t.TempDir(), filepath.Join(dir, "link"))
	os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling"))
	for _, name := range []string{"file", "link", "dangling"} {
		err := PrivateDir(filepath.Join(dir, name))
		if !errors.Is(err, ErrNotPrivate) || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
			t.Errorf("%s: %v; want ErrNotPrivate with the path", name, err)
		}
	}
	if err := PrivateDir(filepath.Join(dir, "file", "below")); err == nil {
		t.Error("a folder below a file")
	}
}

func TestReadPrivate(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	mustWrite(t, path("ok"), "12345", 0o644)
	os.Symlink(path("ok"), path("link"))
	os.Mkdir(path("dir"), 0o700)
	if got, err := ReadPrivate(path("ok"), 5); err != nil || string(got) != "12345" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ReadPrivate(path("ok"), 4); err == nil || errors.Is(err, ErrNotPrivate) {
		t.Errorf("too long: %v", err)
	}
	if _, err := ReadPrivate(path("none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	for _, name := range []string{"link", "dir"} {
		if _, err := ReadPrivate(path(name), 5); !errors.Is(err, ErrNotPrivate) {
			t.Errorf("%s: %v; want ErrNotPrivate", name, err)
		}
	}
}

func ExampleWrite() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	fmt.Println(Write(filepath.Join(dir, "f"), []byte("x"), nil))
	// Output: <nil>
}
