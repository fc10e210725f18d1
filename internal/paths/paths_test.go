package paths

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		root, path string
		want       bool
	}{
		{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/a/..b", true}, {"/", "/a/b", true}, {"/", "/", true},
		{"/a", "/ab", false}, {"/a", "/", false}, {"/a/b", "/a", false}, {"/a", "/b/a", false}, {"/a b", "/a b/c", true},
		{"/a", "/A/b", FoldCase()}, {"/A", "/a", FoldCase()},
	} {
		if got := Within(filepath.FromSlash(c.root), filepath.FromSlash(c.path)); got != c.want {
			t.Errorf("%s in %s: %v", c.path, c.root, got)
		}
	}
}

// FuzzWithin: it agrees with filepath.Rel, which cleans both paths.
func FuzzWithin(f *testing.F) {
	for _, s := range [][2]string{{"a", "a/b"}, {"a", "ab"}, {"", "x"}, {"a/b", "a"}, {"a", "..a"}, {"a//b", "a/b/"}, {"ſ", "s/x"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		top := string(filepath.Separator)
		root, path := filepath.Join(top, a), filepath.Join(top, b)
		rel, err := filepath.Rel(root, path)
		if want := err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+top); Within(root, path) != want && (!FoldCase() || want) {
			t.Errorf("%q in %q: want %v", path, root, want)
		}
		if below := filepath.Join(root, path); !Within(root, below) || !Within(top, path) {
			t.Errorf("%q is not in %q", below, root)
		}
	})
}

func TestResolve(t *testing.T) {
	base := Real(t.TempDir())
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	if err := os.MkdirAll(at("dir", "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": at("dir"), "dangling": at("none"), "loop": at("loop"), "up": "dir/../dir/in"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err) // Windows requires developer mode
		}
	}
	for path, want := range map[string]string{
		"dir": at("dir"), "link": at("dir"), "link/in": at("dir", "in"), "link/new/deep": at("dir", "new", "deep"), "up/x": at("dir", "in", "x"), "new": at("new"),
	} {
		if got, err := Resolve(at(path)); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]error{"dangling": ErrDangling, "dangling/x": ErrDangling, "loop": nil, "loop/x": nil} {
		if got, err := Resolve(at(path)); got != "" || err == nil || want != nil && !errors.Is(err, want) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if got := Real(at("link", "in") + "/."); got != at("dir", "in") {
		t.Errorf("%q", got)
	}
	if got := Real(at("none") + "//x"); got != at("none", "x") {
		t.Errorf("%q", got)
	}
}

func TestFoldCase(t *testing.T) {
	if got := FoldCase(); got != (runtime.GOOS == "darwin" || runtime.GOOS == "windows") {
		t.Errorf("%v on %s", got, runtime.GOOS)
	}
}
