//go:build unix

package source

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCopyTree (SPEC M-2): a folder is copied with its relative links and executables, without git's folder,
// settings, metadata and caches.
func TestCopyTree(t *testing.T) {
	src := t.TempDir()
	write(t, filepath.Join(src, "gemini-extension.json"), manifestText)
	write(t, filepath.Join(src, "bin", "run"), "x")
	must(t, os.Chmod(filepath.Join(src, "bin", "run"), 0o4775)) // set-uid by accident: the copy has ordinary permissions
	must(t, os.Symlink("../gemini-extension.json", filepath.Join(src, "bin", "link")))
	must(t, os.Symlink("nowhere", filepath.Join(src, "dangling")))
	for _, skipped := range []string{".git/config", ".env", ".gemini-extension-install.json", "a/__pycache__/x"} {
		write(t, filepath.Join(src, skipped), "x")
	}
	got, err := Fetch(t.Context(), Source{Kind: Local, Location: src}, t.TempDir(), nil)
	must(t, err)
	if target, _ := os.Readlink(filepath.Join(got.Dir, "bin", "link")); target != "../gemini-extension.json" {
		t.Errorf("the link became %q", target)
	}
	if info, err := os.Stat(filepath.Join(got.Dir, "bin", "run")); err != nil || info.Mode()&^0o055 != 0o700 { // the umask may remove bits
		t.Errorf("the executable: %v, %v", info.Mode(), err)
	}
	for _, skipped := range []string{".git", ".env", ".gemini-extension-install.json", "a/__pycache__"} {
		if _, err := os.Lstat(filepath.Join(got.Dir, skipped)); err == nil {
			t.Errorf("%s was copied", skipped)
		}
	}
}

// TestCopyTreeRefuses: a link out of the folder or a special file is refused by name, at once.
func TestCopyTreeRefuses(t *testing.T) {
	for what, bad := range map[string]func(path string) error{
		"pipe":          func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"socket":        func(p string) error { l, err := net.Listen("unix", p); t.Cleanup(func() { l.Close() }); return err },
		"absolute link": func(p string) error { return os.Symlink("/etc/passwd", p) },
		"link out":      func(p string) error { return os.Symlink("../../x", p) },
		"circle":        func(p string) error { return os.Symlink("bad", p) },
		"device":        func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o600, 1<<8|3) },
	} {
		src, err := os.MkdirTemp("", "s") // short, for the socket
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(src) })
		write(t, filepath.Join(src, "gemini-extension.json"), manifestText)
		if err := bad(filepath.Join(src, "bad")); err != nil {
			if what == "device" && errors.Is(err, syscall.EPERM) {
				continue // not root
			}
			t.Fatal(err)
		}
		_, err = Fetch(t.Context(), Source{Kind: Local, Location: src}, t.TempDir(), nil)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `"bad"`) {
			t.Errorf("%s: %v", what, err)
		}
		if err := checkTree(src, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%s in place: %v", what, err)
		}
	}
}

// TestFromMetadata: the CLI's record leads back to the source.
func TestFromMetadata(t *testing.T) {
	dir := t.TempDir()
	zip := zipOf(t, entry{name: "a", content: "b"})
	for _, c := range []struct {
		kind, location, ref string
		want                Kind
	}{
		{"local", dir, "", Local}, {"link", dir, "", Link}, {"local", zip, "", Archive}, {"local", filepath.Join(dir, "gone"), "", Local},
		{"git", "https://example.com/x", "v1", Git}, {"github-release", "https://github.com/o/r", "", Release}, {"git", "git@example.com:x/y", "", Git},
		{"local", "relative", "", ""}, {"git", "no address", "", ""}, {"git", "-x:y", "", ""}, {"npm", "x", "", ""}, {"git", "ext::sh -c x", "", ""},
	} {
		got, err := FromMetadata(c.kind, c.location, c.ref, false)
		if got.Kind != c.want && err == nil || (err != nil) != (c.want == "") {
			t.Errorf("%s %q: %+v, %v", c.kind, c.location, got, err)
		}
	}
}
