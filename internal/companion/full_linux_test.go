package companion

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/journal"
)

// smallDisk mounts a file system of its own at a folder. CI runs as root, where it may.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("no file system of its own for this test: mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fillUp takes the room that is left, until what it returns is called.
func fillUp(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "full")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(bytes.Repeat([]byte{1}, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// What the companion cannot keep safe is said on the page and to reviewers, as long as it is so, while everything goes on: with a disk that
// is full, and with one that has become read-only. What was opened meanwhile is in the journal when it can be.
func TestFullDiskIsSaid(t *testing.T) {
	for name, trouble := range map[string]func(t *testing.T, dir string) (mend func()){
		"full": fillUp,
		"read-only": func(t *testing.T, dir string) func() {
			t.Helper()
			remount := func(flags uintptr) {
				if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
					t.Fatal(err)
				}
			}
			remount(unix.MS_RDONLY)
			return func() { remount(0) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, dir, _ := options(t)
			at := discovery.NewResume(o.Dirs.State, "pollux", []string{dir}, 0).Journal()
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			smallDisk(t, at, "256k")
			c := start(t, o)
			address, err := c.PageAddress()
			if err != nil {
				t.Fatal(err)
			}
			origin, key := webtest.Login(t, address)
			page := webtest.Connect(t, origin, key)
			page.Call("hello", map[string]any{"clientId": "person"}, nil)
			propose := func(key string, size int) *review.Diff {
				t.Helper()
				d, err := c.reg.Open(t.Context(), &stranger{}, review.Proposal{Key: key, Path: filepath.Join(dir, key), IsNew: true, New: strings.Repeat("x", size)}, func(d *review.Diff) { c.journal.Opened("s", d) })
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			if name == "full" { // a file that is open for writing keeps a disk from becoming read-only
				propose("before", 20_000)
			}
			queue := (backend{c}).Watch(t.Context(), 0)
			if len(queue.Troubles) > 0 {
				t.Fatalf("trouble at the start: %+v", queue.Troubles)
			}
			mend := trouble(t, at)
			during := propose("during", 20_000)
			said := func(want bool) {
				t.Helper()
				for deadline := time.Now().Add(within); ; {
					queue = (backend{c}).Watch(t.Context(), queue.Version)
					is := slices.ContainsFunc(queue.Troubles, func(x control.Trouble) bool { return x.ID == "journal" && strings.Contains(x.What, at) })
					if is == want {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("reviewers are told %+v", queue.Troubles)
					}
				}
				var told struct{ Troubles []struct{ What, Do string } }
				page.Expect("troubles/changed", &told)
				if is := len(told.Troubles) == 1 && strings.Contains(told.Troubles[0].What, at) && told.Troubles[0].Do != ""; is != want {
					t.Fatalf("the page is told %+v", told)
				}
			}
			said(true)
			var hello struct{ Troubles []struct{ What string } }
			webtest.Connect(t, origin, key).Call("hello", map[string]any{"clientId": "another"}, &hello)
			if len(hello.Troubles) != 1 {
				t.Errorf("a page that comes is told %+v", hello)
			}
			if _, err := c.reg.Edit(during.ID(), review.Edit{Text: "mine"}); err != nil {
				t.Errorf("editing meanwhile: %v", err)
			}
			mend()
			said(false)
			left := journal.Open(at, nil, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
			if texts, err := left.Texts(during.ID()); err != nil || texts.Text != "mine" {
				t.Errorf("what was opened meanwhile: %.20q, %v", texts.Text, err)
			}
			if err := c.reg.Reject(during.ID()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
}

// SPEC C-8: that a folder is withheld is said there too, until its ignore file is mended.
func TestWithheldFolderIsSaid(t *testing.T) {
	o, dir, _ := options(t)
	for name, text := range map[string]string{"f": "x\n", ".geminiignore": "\xff\xfe"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, o)
	address, err := c.PageAddress()
	if err != nil {
		t.Fatal(err)
	}
	page := webtest.Open(t, address, "person")
	var told struct{ Troubles []struct{ What string } }
	page.Notify("context/update", map[string]any{"focused": true, "active": nil, "open": []string{filepath.Join(dir, "f")}, "dirty": []string{}})
	page.Expect("troubles/changed", &told)
	if len(told.Troubles) != 1 || !strings.Contains(told.Troubles[0].What, ".geminiignore") {
		t.Errorf("the page is told %+v", told)
	}
	if q := (backend{c}).Watch(t.Context(), 0); len(q.Troubles) != 1 || q.Troubles[0].ID != "sharing" {
		t.Errorf("reviewers are told %+v", q.Troubles)
	}
	if err := os.WriteFile(filepath.Join(dir, ".geminiignore"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page.Expect("troubles/changed", &told)
	if len(told.Troubles) != 0 {
		t.Errorf("mended, and the page is told %+v", told)
	}
}
