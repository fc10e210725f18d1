//go:build unix

package settingsfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Only root's own file in root's own folder counts, and only if nobody else can write to either.
func TestRootsOwn(t *testing.T) {
	t.Parallel()
	root := os.Getuid() == 0
	for name, tt := range map[string]struct {
		file, dir os.FileMode
		chown     bool
		want      bool
	}{
		"root's":                {0o644, 0o755, false, root},
		"the group may write":   {0o664, 0o755, false, false},
		"all may write":         {0o646, 0o755, false, false},
		"a folder of the group": {0o644, 0o775, false, false},
		"a folder of all":       {0o644, 0o757, false, false},
		"another user's":        {0o644, 0o755, true, false},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "settings.json")
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.chown && root {
			if err := os.Chown(file, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		for path, mode := range map[string]os.FileMode{file: tt.file, dir: tt.dir} {
			if err := os.Chmod(path, mode); err != nil { // independent of the umask
				t.Fatal(err)
			}
		}
		if got := RootsOwn(file); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if RootsOwn(filepath.Join(t.TempDir(), "missing")) {
		t.Error("a missing file")
	}
}
