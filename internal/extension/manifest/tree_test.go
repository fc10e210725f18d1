package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const treeManifest = `{"name": "a", "version": "1.0.0", "permissions": {"filesystem": {"read": "workspace"}}, "x": [1, "é"]}`

func treeOf(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := ReadTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// Every change of the content changes the hash; nothing else does (SPEC S-2).
func TestTreeHash(t *testing.T) {
	dir := t.TempDir()
	base := func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, FileName), treeManifest)
		write(t, filepath.Join(dir, "tools", "a.py"), "a")
		write(t, filepath.Join(dir, "tools", "b.py"), "b")
	}
	base()
	first := treeOf(t, dir)
	for name, c := range map[string]struct {
		change func()
		want   TreeDiff
	}{
		"content":    {func() { write(t, filepath.Join(dir, "tools", "a.py"), "A") }, TreeDiff{Changed: []string{"tools/a.py"}}},
		"new file":   {func() { write(t, filepath.Join(dir, "c"), "") }, TreeDiff{Added: []string{"c"}}},
		"deep .env":  {func() { write(t, filepath.Join(dir, "tools", ".env"), "") }, TreeDiff{Added: []string{"tools/.env"}}},
		"rename":     {func() { os.Rename(filepath.Join(dir, "tools", "a.py"), filepath.Join(dir, "tools", "z.py")) }, TreeDiff{Added: []string{"tools/z.py"}, Removed: []string{"tools/a.py"}}},
		"removed":    {func() { os.Remove(filepath.Join(dir, "tools", "b.py")) }, TreeDiff{Removed: []string{"tools/b.py"}}},
		"executable": {func() { os.Chmod(filepath.Join(dir, "tools", "a.py"), 0o755) }, TreeDiff{Changed: []string{"tools/a.py"}}},
		"link":       {func() { os.Symlink("tools/a.py", filepath.Join(dir, "l")) }, TreeDiff{Added: []string{"l"}}},
		"file:link": {func() {
			os.Remove(filepath.Join(dir, "tools", "a.py"))
			os.Symlink("a", filepath.Join(dir, "tools", "a.py"))
		}, TreeDiff{Changed: []string{"tools/a.py"}}},
		"manifest":    {func() { write(t, filepath.Join(dir, FileName), treeManifest+"\n") }, TreeDiff{Changed: []string{FileName}}},
		"git":         {func() { write(t, filepath.Join(dir, ".git", "HEAD"), "x") }, TreeDiff{}},
		"metadata":    {func() { write(t, filepath.Join(dir, InstallFileName), "{}") }, TreeDiff{}},
		"env":         {func() { write(t, filepath.Join(dir, ".env"), "A=b") }, TreeDiff{}},
		"cache":       {func() { write(t, filepath.Join(dir, "tools", "__pycache__", "a.pyc"), "x") }, TreeDiff{}},
		"times":       {func() { os.Chtimes(filepath.Join(dir, "tools", "a.py"), time.Unix(1, 0), time.Unix(1, 0)) }, TreeDiff{}},
		"empty dir":   {func() { os.Mkdir(filepath.Join(dir, "empty"), 0o755) }, TreeDiff{}},
		"group write": {func() { os.Chmod(filepath.Join(dir, "tools", "a.py"), 0o664) }, TreeDiff{}},
	} {
		base()
		c.change()
		tree := treeOf(t, dir)
		for _, l := range []*[]string{&c.want.Added, &c.want.Removed, &c.want.Changed} {
			if *l == nil {
				*l = []string{}
			}
		}
		if diff := cmp.Diff(c.want, tree.Since(first)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if same := tree.Hash() == first.Hash(); same != (len(c.want.Added)+len(c.want.Removed)+len(c.want.Changed) == 0) {
			t.Errorf("%s: same hash: %v", name, same)
		}
	}
}

// A tree survives writing and reading, as in a record of the store.
func TestTreeRoundTrip(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, FileName), treeManifest)
	tree := treeOf(t, dir)
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var back Tree
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	hash, err := HashTree(dir)
	if err != nil || back.Hash() != tree.Hash() || back.ConsentHash() != tree.ConsentHash() || hash != tree.Hash() {
		t.Errorf("%+v became %+v (%v)", tree, back, err)
	}
	if !strings.HasPrefix(hash, "sha256:") || len(hash) != 7+64 {
		t.Errorf("hash %q", hash)
	}
}

// Consent covers everything except the layout and the permissions, which are compared separately (SPEC S-2).
func TestConsentHash(t *testing.T) {
	hash := func(manifest string) string {
		dir := t.TempDir()
		write(t, filepath.Join(dir, FileName), manifest)
		return treeOf(t, dir).ConsentHash()
	}
	agreed := hash(treeManifest)
	for text, same := range map[string]bool{
		`{"name": "a", "version": "1.0.0", "x": [1, "é"]}`:                                                  true,
		`{"version":"1.0.0","name":"a","permissions":{},"x":[1,"\u00e9"]}`:                                  true,
		`{"name": "a", "version": "1.0.0", "permissions": {"filesystem": {"read": "full"}}, "x": [1, "é"]}`: true,
		`{"name": "a", "version": "1.0.1", "x": [1, "é"]}`:                                                  false,
		`{"name": "a", "version": "1.0.0", "x": [1.0, "é"]}`:                                                false,
		`{"name": "a", "version": "1.0.0", "x": ["1", "é"]}`:                                                false,
		`{"name": "a", "version": "1.0.0", "x": [1, "é"], "y": null}`:                                       false,
		`{"name": "a", "version": "1.0.0", "x": [1, "é"], "Permissions": {}}`:                               false,
		`{"name": "a", "version": "1.0.0", "x": {"permissions": 1}}`:                                        false,
		`{"name": "a", "version": "1.0.0", "x": [1, "é"],}`:                                                 false,
		`no JSON`: false,
	} {
		if got := hash(text) == agreed; got != same {
			t.Errorf("same for %s: %v", text, got)
		}
	}
	if hash("no JSON") == hash("other") {
		t.Error("a manifest that is not understood has no hash of its own")
	}
}

func TestTreeBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, strings.Repeat("d/", maxPathDepth+1), "f"), "x")
	if _, err := ReadTree(dir); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("error %v", err)
	}
	r := &treeReader{tree: &Tree{Files: make([]FileSum, MaxFiles)}}
	if err := r.file("x", nil); err == nil {
		t.Error("one file too many")
	}
	big := t.TempDir()
	f, err := os.Create(filepath.Join(big, "big"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Truncate(MaxTotal+1) != nil {
		t.Skip("no sparse files here")
	}
	if _, err := ReadTree(big); err == nil || !strings.Contains(err.Error(), "MiB") {
		t.Errorf("error %v", err)
	}
}
