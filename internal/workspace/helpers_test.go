package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A box is a workspace over one folder of the test's, beside one that lies outside.
type box struct {
	*Workspace
	t             *testing.T
	root, outside string
}

func newBox(t *testing.T, o *Options) *box {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, root: filepath.Join(base, "root"), outside: filepath.Join(base, "outside")}
	for _, d := range []string{b.root, b.outside} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if b.Workspace, err = New([]string{b.root}, o); err != nil {
		t.Fatal(err)
	}
	return b
}

// path returns the path of a name in the root.
func (b *box) path(name string) string { return filepath.Join(b.root, filepath.FromSlash(name)) }

// put writes a file with its folders.
func (b *box) put(name, content string) string {
	b.t.Helper()
	path := b.path(name)
	if filepath.IsAbs(name) {
		path = name
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *box) link(target, name string) string {
	b.t.Helper()
	if err := os.Symlink(target, b.path(name)); err != nil {
		b.t.Skip("no symlinks here: ", err)
	}
	return b.path(name)
}

func (b *box) disk(path string) string {
	b.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// promptly fails the test when f hangs.
func promptly(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// MayShare is Sharing for one file.
func (w *Workspace) MayShare(path string) bool { return w.Sharing()(path) }

// Ignored reports whether git would ignore a path of the workspace: a pattern of a
// .gitignore, .git/info/exclude or core.excludesFile fits its name or a folder above it.
// It is false for a path outside the workspace.
func (w *Workspace) Ignored(path string) bool {
	l, err := w.locate(path)
	if err != nil || len(l.names) == 0 {
		return false
	}
	fi, err := os.Lstat(l.path)
	dir := filepath.Dir(l.path)
	return w.ignores.at(l.root, dir).git(filepath.Base(l.path), err == nil && fi.IsDir())
}
