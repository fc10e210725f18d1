package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRoots(t *testing.T) {
	b := newBox(t, nil)
	file := b.put("file", "")
	inner := filepath.Dir(b.put("in/x", ""))
	link := b.link(b.root, "../link")
	for _, bad := range []string{file, b.path("none")} {
		if _, err := New([]string{bad}, nil); err == nil {
			t.Errorf("%q was taken for a folder", bad)
		}
	}
	w, err := New([]string{link, b.root, inner}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Roots(); len(got) != 2 || got[0] != b.root || got[1] != inner {
		t.Errorf("Roots: %q", got)
	}
	if err := w.SetRoots([]string{b.path("none")}); err == nil || len(w.Roots()) != 2 {
		t.Error("a wrong folder must change nothing")
	}
	// A name that is protected in the outer root stays so, although an inner one would not show it.
	if err := os.MkdirAll(b.path(".git/in"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := w.SetRoots([]string{b.path(".git/in"), b.root}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "below .git of the outer root", w.WriteFile(b.path(".git/in/x"), nil), ErrProtected)
}

func TestContains(t *testing.T) {
	b := newBox(t, nil)
	b.put("d/f", "")
	b.link(b.outside, "out")
	b.link(b.path("d"), "in")
	b.link(filepath.Join(b.outside, "none"), "dangling")
	b.link("loop", "loop")
	alias := b.link(b.root, "../alias")
	for path, want := range map[string]bool{
		b.root: true, b.path("d/f"): true, b.path("new/deep/file"): true, b.path("in/f"): true, b.path("in/new"): true,
		filepath.Join(alias, "d/f"): true, b.path("d//f"): true, b.root + "/": true,
		b.outside: false, filepath.Join(b.outside, "x"): false, b.root + "x": false, b.root + "x/y": false,
		b.path("out"): false, b.path("out/x"): false, b.path("dangling"): false, b.path("dangling/x"): false, b.path("loop/x"): false,
		b.root + "/../root/d": false, b.root + "/d/..": false, "d/f": false, "": false, "/": false,
		b.path("d/f/x"): false, b.path("a\x00"): false, b.path(strings.Repeat("x", 256)): false,
		b.root + strings.Repeat("/a", 3000): false, b.root + strings.Repeat("/abcdefghi", 600): false,
	} {
		if got := b.Contains(path); got != want {
			t.Errorf("Contains(%.100q) = %v", path, got)
		}
	}
}

// protected reports whether a component of rel is a protected name.
func protected(rel string) bool { return slices.ContainsFunc(strings.Split(rel, "/"), protectedName) }

func TestProtected(t *testing.T) { // SPEC T-11
	for _, name := range []string{
		".git", ".gemini", ".vscode", ".idea", ".husky", ".envrc", ".mcp.json", ".claude", ".cursor", ".devcontainer",
		".git/hooks/pre-commit", "a/.git/config", "a/b/.gemini", ".GIT", ".Gemini", ".gi\u200ct", "\ufeff.git", ".git.", ".git ", ".git . .",
		".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~2", "GEMINI~1", "vscode~1", "DEVCON~1", ".hu\u017fky",
	} {
		if !protected(name) {
			t.Errorf("%q is not protected", name)
		}
	}
	for _, name := range []string{"git", "gemini", ".gitignore", ".github/workflows/x.yml", ".geminiignore", "a.git", "x~1", "~", "~/x", "", "a/b", ".gitattributes", "backup~", "g~1"} {
		if protected(name) {
			t.Errorf("%q is protected", name)
		}
	}
}

// attacks are paths that must not be written, each with the reason.
func attacks(b *box) map[string]error {
	b.put(filepath.Join(b.outside, "secret"), "secret")
	b.put(".git/config", "config")
	b.put("dir/f", "")
	b.put("plain", "plain")
	b.link(b.outside, "out")
	b.link(filepath.Join(b.outside, "secret"), "secret")
	b.link(filepath.Join(b.outside, "fresh"), "fresh")
	b.link(".git", "git")
	b.link(filepath.Join(b.root, ".git", "config"), "dir/conf")
	b.link("../../outside", "dir/up")
	b.link("round", "round")
	return map[string]error{
		"relative/path":                     ErrBadPath,
		"":                                  ErrBadPath,
		b.root + "/../outside/secret":       ErrBadPath,
		b.root + "/dir/../plain":            ErrBadPath,
		b.root + "/a\x00b":                  ErrBadPath,
		b.path(strings.Repeat("n", 300)):    ErrBadPath,
		b.root + strings.Repeat("/d", 4000): ErrBadPath,
		filepath.Join(b.outside, "secret"):  ErrOutside,
		filepath.Join(b.outside, "new"):     ErrOutside,
		"/etc/passwd":                       ErrOutside,
		b.path("out/secret"):                ErrOutside,
		b.path("out/new/deep"):              ErrOutside,
		b.path("dir/up/secret"):             ErrOutside,
		b.path("secret"):                    ErrOutside,
		b.path("fresh"):                     ErrOutside,
		b.path(".git/config"):               ErrProtected,
		b.path(".GIT/config"):               ErrProtected,
		b.path("git/config"):                ErrProtected,
		b.path("git/hooks/new"):             ErrProtected,
		b.path("dir/conf"):                  ErrProtected,
		b.path("deep/new/.gemini/x"):        ErrProtected,
		b.path(".git\u200c/config"):         ErrProtected,
		b.path("round"):                     ErrBadPath,
		b.path("round/x"):                   ErrBadPath,
		b.root:                              ErrNotFile,
		b.path("dir"):                       ErrNotFile,
		b.path("plain/below"):               nil, // whatever the system says
	}
}

func TestWriteFileAttacks(t *testing.T) { // SPEC T-11
	b := newBox(t, nil)
	for path, want := range attacks(b) {
		err := b.WriteFile(path, []byte("attacked"))
		if err == nil {
			t.Errorf("%.100q was written", path)
		}
		if want != nil {
			wantErr(t, path, err, want)
		}
		if _, err := b.Save(path, "attacked", "", true); err == nil {
			t.Errorf("%.100q was saved", path)
		}
		if path != b.path("fresh") && path != b.path("secret") { // links themselves may be removed
			for _, f := range []func() error{
				func() error { return b.Create(path, false) },
				func() error { return b.Rename(b.path("plain"), path) },
			} {
				if f() == nil {
					t.Errorf("%.100q was changed", path)
				}
			}
		}
	}
	if b.disk(filepath.Join(b.outside, "secret")) != "secret" || b.disk(b.path(".git/config")) != "config" || b.disk(b.path("plain")) != "plain" {
		t.Error("something was written")
	}
	for _, gone := range []string{b.path("deep"), filepath.Join(b.outside, "fresh"), filepath.Join(b.outside, "new"), b.path(".git/hooks")} {
		if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q was made", gone)
		}
	}
}

// A folder on the way is exchanged for a link out of the workspace, or to a
// protected folder, again and again while files are written: none arrives there.
func TestSymlinkSwap(t *testing.T) { // SPEC T-11
	b := newBox(t, nil)
	b.put(".git/f", "config")
	b.put(filepath.Join(b.outside, "f"), "secret")
	b.put("way/f", "")
	b.link(b.outside, "probe")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // way is a folder, then a link, then the folder, then another link …
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			way, parked := b.path("way"), b.path("parked")
			_ = os.Rename(way, parked)
			_ = os.RemoveAll(way) // WriteFile may have made it anew
			_ = os.Symlink([]string{b.outside, b.path(".git")}[i%2], way)
			_ = os.RemoveAll(way)
			_ = os.Rename(parked, way)
		}
	}()
	written, refused := 0, 0
	begun := time.Now()
	for least, most := begun.Add(2*time.Second), begun.Add(time.Minute); time.Now().Before(least) || refused == 0 && time.Now().Before(most); {
		if b.WriteFile(b.path("way/f"), []byte("attacked")) == nil {
			written++
		} else {
			refused++
		}
		if s, err := b.Read(b.path("way/f")); err == nil && s.Content == "secret" {
			t.Error("read through a link that was put in the way")
		}
	}
	close(stop)
	<-stopped
	if got := b.disk(filepath.Join(b.outside, "f")) + b.disk(b.path(".git/f")); got != "secretconfig" {
		t.Errorf("written through a link: %q", got)
	}
	if refused == 0 {
		t.Error("nothing was put in the way: this test has tested nothing")
	}
	t.Logf("%d writes found a folder in place, %d did not", written, refused)
}

func FuzzWriteFile(f *testing.F) { // SPEC T-11, A-4
	for _, s := range []string{"a", "a/b", "../x", ".git/x", "a/../../x", "/x", "out/x", "in/x", "a\x00", ".GIT ", "a//b/", "./a", "con", "a:b", strings.Repeat("a/", 50)} {
		f.Add(s)
	}
	base, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	for _, d := range []string{root, outside, filepath.Join(root, ".git"), filepath.Join(root, "d")} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			f.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out": outside, "in": "d", "up": "..", "g": ".git"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			f.Skip(err)
		}
	}
	w, err := New([]string{root}, nil)
	if err != nil {
		f.Fatal(err)
	}
	long := strings.Repeat(strings.Repeat("l", 200)+"/", 21)
	f.Add(long[:4095-len(root)-1])
	f.Add(long[:4096-len(root)-1])
	f.Fuzz(func(t *testing.T, name string) {
		path := root + "/" + name
		err := w.WriteFile(path, []byte("x"))
		for _, dir := range []string{outside, filepath.Join(root, ".git")} {
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Fatalf("WriteFile(%q) = %v made %q in %q", path, err, left[0].Name(), dir)
			}
		}
		if left, _ := os.ReadDir(base); len(left) != 2 {
			t.Fatalf("WriteFile(%q) = %v made something beside the root", path, err)
		}
		if err == nil {
			if data, err := os.ReadFile(path); err != nil || string(data) != "x" {
				t.Fatalf("WriteFile(%q) wrote elsewhere: %v", path, err)
			}
			if protected(name) {
				t.Fatalf("WriteFile(%q) wrote to a protected name", path)
			}
		}
		names, _ := os.ReadDir(root)
		for _, n := range names {
			switch n.Name() {
			case "out", "in", "up", "g", "d", ".git":
			default:
				_ = os.RemoveAll(filepath.Join(root, n.Name()))
			}
		}
	})
}
