package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// disk mounts a small file system at a new folder, or skips the test if that is not allowed. (TestFailure injects the
// same errors everywhere.)
func disk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("no file system of its own for this test: mount: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// TestDiskFull (SPEC M-2): however little space is left, an operation succeeds, or changes no file and leaves nothing
// behind.
func TestDiskFull(t *testing.T) {
	for _, o := range operations()[:2] {
		t.Run(o.String(), func(t *testing.T) {
			failed, done := 0, 0
			for pages := range 40 {
				s, src := o.prepare(t)
				home := disk(t, "1m")
				must(t, os.CopyFS(home, os.DirFS(s.home)))
				s.home, s.gemini, s.workDir = home, filepath.Join(home, ".gemini"), home
				must(t, os.MkdirAll(s.Dir(), 0o700))
				leave(t, home, pages)
				before := snapshot(t, s)
				err := perform(s, o.name, src)
				switch {
				case err == nil:
					done++
					if got := whole(t, s); got != o.after {
						t.Fatalf("%d pages: version %q", pages, got)
					}
				case !errors.Is(err, unix.ENOSPC):
					t.Fatalf("%d pages: %v", pages, err)
				default:
					failed++
					if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
						t.Fatalf("%d pages: something changed:\n%s", pages, diff)
					}
				}
				tidy(t, s)
			}
			if failed < 3 || done < 3 {
				t.Errorf("%d failed for want of room, %d were done: the test does not reach both", failed, done)
			}
		})
	}
}

// leave fills the disk except for a number of pages.
func leave(t *testing.T, dir string, pages int) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	must(t, err)
	defer f.Close()
	page := make([]byte, os.Getpagesize())
	n := 0
	for ; ; n++ {
		if _, err := f.Write(page); err != nil {
			break
		}
	}
	must(t, f.Truncate(int64(max(0, n-pages)*len(page))))
}

// TestReadOnlyHome: reading works. A change reports what failed and where, and leaves nothing.
func TestReadOnlyHome(t *testing.T) {
	o := operations()[1]
	s, src := o.prepare(t)
	home := disk(t, "1m")
	must(t, os.CopyFS(home, os.DirFS(s.home)))
	s.home, s.gemini, s.workDir = home, filepath.Join(home, ".gemini"), home
	must(t, unix.Mount("", home, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	before := snapshot(t, s)
	if v, err := s.Verify("x"); err != nil || !v.Same() {
		t.Errorf("verifying: %+v, %v", v, err)
	}
	for _, op := range []string{"install", "update", "uninstall"} {
		err := perform(s, op, src)
		if err == nil || !strings.Contains(err.Error(), "read-only file system") || !strings.Contains(err.Error(), ".gemini") {
			t.Errorf("%s: error %v", op, err)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
		t.Error(diff)
	}
}
