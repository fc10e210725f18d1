package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// SPEC C-8: what agents are not told of, nobody sends them by mistake; whatever else lies in the workspace may be mentioned.
func TestMayMention(t *testing.T) {
	b := newBox(t, &Options{NeverShare: []string{"*.mine", "!open.key"}})
	b.put(".geminiignore", "build/\nhidden.txt\n!build/kept\n")
	root := filepath.Dir(b.put("a.txt", "x"))
	outside := filepath.Join(t.TempDir(), "o.txt")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.put(".env", "K=1"), filepath.Join(root, "plain.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "out.txt")); err != nil {
		t.Fatal(err)
	}
	b.put("sub/b.txt", "")
	b.put("build/x.o", "")
	b.put("sub/hidden.txt", "")
	b.put("notes.mine", "")
	b.put("open.key", "")
	b.put("id_rsa", "")
	for name, want := range map[string]error{
		"a.txt": nil, "sub": nil, "sub/b.txt": nil, "": nil, "open.key": nil,
		".env": errWithheld, "plain.txt": errWithheld, "id_rsa": errWithheld, "notes.mine": errWithheld,
		"build": errWithheld, "build/x.o": errWithheld, "sub/hidden.txt": errWithheld,
		"out.txt": ErrOutside, "none.txt": fs.ErrNotExist, "sub/../a.txt": ErrBadPath, "a\xff": ErrBadPath,
	} {
		if err := b.MayMention(root + "/" + name); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	if err := b.MayMention(outside); !errors.Is(err, ErrOutside) {
		t.Errorf("outside: %v", err)
	}
	all := newBox(t, &Options{ShareOutside: true})
	if err := all.MayMention(outside); err != nil {
		t.Errorf("outside, where that is allowed: %v", err)
	}
}
