package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/permission"
)

// TestPlace: the workspace is the nearest known root (SPEC E-2).
func TestPlace(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "home")
	if err := os.MkdirAll(filepath.Join(home, "a/b/c"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(home, "a"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	at := func(name string) string { return filepath.Join(root, name) }
	work := permission.Permissions{Read: permission.Workspace}
	for _, test := range []struct {
		name, dir string
		roots     []string
		p         permission.Permissions
		workspace string
		refused   bool
	}{
		{name: "no roots", dir: at("home/a/b"), p: work, workspace: at("home/a/b")},
		{name: "a root", dir: at("home/a/b/c"), roots: []string{at("home/a")}, p: work, workspace: at("home/a")},
		{name: "the nearest", dir: at("home/a/b/c"), roots: []string{at("home/a"), at("home/a/b"), at("home")}, p: work, workspace: at("home/a/b")},
		{name: "another's root", dir: at("home/a/b"), roots: []string{at("home/x")}, p: work, workspace: at("home/a/b")},
		{name: "a name that begins alike", dir: at("home/a/b"), roots: []string{at("home/a/") + "b"[:0] + "bb"}, p: work, workspace: at("home/a/b")},
		{name: "through a link", dir: at("link/b"), roots: []string{at("link")}, p: work, workspace: at("home/a")},
		{name: "home", dir: home, p: work, refused: true},
		{name: "home as a root", dir: at("home/a"), roots: []string{home}, p: work, refused: true},
		{name: "above home", dir: root, p: work, refused: true},
		{name: "the root", dir: "/", p: work, refused: true},
		{name: "home, without need", dir: home, workspace: ""},
		{name: "gone", dir: at("gone"), refused: true},
		{name: "relative", dir: "a", refused: true},
	} {
		workspace, _, err := place(Request{Extension: "x", Tool: "t", WorkDir: test.dir, Roots: test.roots}, test.p)
		if (err != nil) != test.refused || workspace != test.workspace {
			t.Errorf("%s: %q, %v", test.name, workspace, err)
		}
	}
}
