//go:build unix

package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// SPEC D-4: a new file is 0600 whatever the umask; T-11: a file keeps its mode.
func TestWriteMode(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "f")
	for _, step := range []struct {
		o    *Options
		was  os.FileMode // 0: no file
		want os.FileMode
	}{
		{nil, 0, 0o600},
		{nil, 0o644, 0o600},
		{&Options{KeepMode: true}, 0o754, 0o754},
		{&Options{KeepMode: true}, 0, 0o600},
		{&Options{KeepMode: true, Mode: 0o644}, 0, 0o644},
		{&Options{Mode: 0o666}, 0o600, 0o666},
	} {
		os.Remove(path)
		if step.was != 0 {
			mustWrite(t, path, "old", step.was)
		}
		if err := Write(path, nil, step.o); err != nil {
			t.Fatal(err)
		}
		if got := modeOf(t, path); got != step.want {
			t.Errorf("%+v over %o: mode %o, want %o", step.o, step.was, got, step.want)
		}
	}
}

// A link at the path is replaced; its target is not touched.
func TestWriteReplacesLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	mustWrite(t, target, "precious", 0o644)
	os.Symlink(target, link)
	if err := Write(link, []byte("x"), &Options{KeepMode: true}); err != nil {
		t.Fatal(err)
	}
	wantFile(t, target, "precious")
	wantFile(t, link, "x")
	if modeOf(t, link) != 0o600 {
		t.Error("a link's mode was taken for a file's")
	}
}

func TestPrivateDirClosesOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	os.Mkdir(dir, 0o700)
	os.Chmod(dir, 0o777)
	if err := PrivateDir(dir); err != nil {
		t.Fatal(err)
	}
	if got := modeOf(t, dir); got != 0o755 {
		t.Errorf("mode %o, want 755: readable as before, writable for us alone", got)
	}
}

// SPEC D-4: a file or folder of another user is refused by name.
func TestForeign(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	os.Mkdir(dir, 0o700)
	file := filepath.Join(dir, "f")
	mustWrite(t, file, "x", 0o644)
	if os.Chown(file, 12345, -1) != nil { // only root can; other users test with the system's folders
		dir, file = "/", "/etc/passwd"
	} else if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPrivate(file, 1<<20); !errors.Is(err, ErrNotPrivate) || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("file: %v", err)
	}
	if err := PrivateDir(dir); !errors.Is(err, ErrNotPrivate) || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("folder: %v", err)
	}
}

// A pipe at the path must not block the reader.
func TestReadPrivatePipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPrivate(path, 10); !errors.Is(err, ErrNotPrivate) {
		t.Errorf("%v, want ErrNotPrivate", err)
	}
}

// Saving another user's file as root keeps its owner.
func TestWriteKeepsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	mustWrite(t, path, "x", 0o640)
	uid, gid := os.Geteuid(), os.Getegid()
	if os.Chown(path, 12345, 12345) == nil {
		uid, gid = 12345, 12345
	}
	if err := Write(path, []byte("y"), &Options{KeepMode: true}); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(path)
	st := info.Sys().(*syscall.Stat_t)
	if int(st.Uid) != uid || int(st.Gid) != gid || info.Mode().Perm() != 0o640 {
		t.Errorf("owner %d:%d mode %o", st.Uid, st.Gid, info.Mode().Perm())
	}
}
