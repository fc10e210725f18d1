//go:build unix

package workspace

import (
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// Devices, FIFOs and sockets are neither read nor written, and nothing waits
// for whoever is at their other end.
func TestSpecialFiles(t *testing.T) { // SPEC T-11
	b := newBox(t, nil)
	fifo, sock := b.path("fifo"), b.path("s")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	b.link("/dev/zero", "zero")
	b.link(fifo, "alias")
	if err := syscall.Mkfifo(b.path(".gitignore"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(b.path(".geminiignore"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.put("f", "")
	promptly(t, "something with a FIFO", func() {
		for _, path := range []string{fifo, sock, b.path("alias")} {
			_, err := b.Read(path)
			wantErr(t, "Read "+path, err, ErrNotFile)
			wantErr(t, "WriteFile "+path, b.WriteFile(path, nil), ErrNotFile)
			_, err = b.Save(path, "x", "", true)
			wantErr(t, "Save "+path, err, ErrNotFile)
			if b.MayShare(path) || b.Version(path) != unreadable {
				t.Errorf("%s may be shared", path)
			}
		}
		if _, err := b.Read(b.path("zero")); err == nil {
			t.Error("a device was read")
		}
		entries, _, err := b.List(b.root, true)
		if err != nil || len(entries) != 2 || entries[0].Name != "f" || entries[1].Name != "zero" || entries[1].Kind != kindLink {
			t.Errorf("List: %+v %v", entries, err)
		}
		if b.Ignored(b.path("f")) {
			t.Error("a FIFO was taken for a list of patterns")
		}
		if b.MayShare(b.path("f")) || len(b.Withheld()) != 1 { // SPEC C-8: what it should hide is not known
			t.Error("a FIFO in the place of .geminiignore was taken for no list of patterns")
		}
		if found, err := b.Find(t.Context(), "", 10); err != nil || len(found.Files) != 1 {
			t.Errorf("Find: %q %v", found.Files, err)
		}
	})
}

func TestModeIsKept(t *testing.T) { // SPEC T-11
	b := newBox(t, nil)
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o755, 0o777} {
		path := b.put("f", "x")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := b.WriteFile(path, []byte("y")); err != nil {
			t.Fatal(err)
		}
		if fi, _ := os.Stat(path); fi.Mode().Perm() != mode {
			t.Errorf("%v became %v", mode, fi.Mode())
		}
		if _, err := b.Save(path, "z", "", true); err != nil {
			t.Fatal(err)
		}
		if fi, _ := os.Stat(path); fi.Mode().Perm() != mode {
			t.Errorf("%v became %v by Save", mode, fi.Mode())
		}
		_ = os.Remove(path)
	}
	umask := syscall.Umask(0o027)
	defer syscall.Umask(umask)
	if err := b.WriteFile(b.path("new/f"), nil); err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Stat(b.path("new/f")); fi.Mode().Perm() != 0o640 {
		t.Errorf("a new file has mode %v under umask 027", fi.Mode())
	}
	if left, _ := os.ReadDir(b.path("new")); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}

func TestReadOnly(t *testing.T) {
	b := newBox(t, nil)
	path := b.put("f", "x")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "WriteFile", b.WriteFile(path, nil), fs.ErrPermission)
	_, err := b.Save(path, "y", "", true)
	wantErr(t, "Save", err, fs.ErrPermission)
	if s, err := b.Read(path); err != nil || !s.ReadOnly || s.Content != "x" {
		t.Errorf("%+v %v", s, err)
	}
}
