//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPutCopies: where copies cannot hide the original they lie elsewhere, unchanged, and the command names them
// there.
func TestPutCopies(t *testing.T) {
	dir := t.TempDir()
	c, folders, err := putCopies(Command{
		Args: []string{"/ext/x/run.sh", "--file=/ext/x/data", "--other", "/ext/xy", "/ext/x"}, Env: []string{"ROOT=/ext/x", "KEEP=/ext"}, Dir: "/ext/x/sub",
		Copies: []Copy{{Dir: "/ext/x", Files: []CopyFile{{Name: "run.sh", Data: []byte("run"), Executable: true}, {Name: "sub/data", Data: []byte("data")}}}},
	}, dir)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "copy-0", "x")
	if !slices.Equal(c.Args, []string{at + "/run.sh", "--file=" + at + "/data", "--other", "/ext/xy", at}) || !slices.Equal(c.Env, []string{"ROOT=" + at, "KEEP=/ext"}) || c.Dir != at+"/sub" || !slices.Equal(folders, []string{at}) || len(c.Copies) != 0 {
		t.Errorf("%+v %q", c, folders)
	}
	for name, mode := range map[string]os.FileMode{"run.sh": 0o500, "sub/data": 0o400} {
		if info, err := os.Stat(filepath.Join(at, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}
