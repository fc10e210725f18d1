package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What install writes is what the real editor finds, without any line in the
// user's own files; uninstall leaves nothing.
func TestInstalled(t *testing.T) {
	for name, e := range map[string]struct {
		flavour flavour
		args    func(b *bench) []string // start the editor as a user does
	}{
		"neovim": {neovim(t), func(b *bench) []string { return []string{"nvim", "--listen", b.root + "/n", "a"} }},
		"vim":    {vim(t), func(*bench) []string { return []string{"vim", "a"} }},
		"emacs":  {emacs(t), func(*bench) []string { return []string{"emacs", "-nw", "a"} }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, e.flavour, map[string]string{"a": "a\n"})
			pollux := func(args ...string) string {
				t.Helper()
				cmd := exec.Command(binary(), args...)
				cmd.Env, cmd.Dir = b.env, b.project
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return string(out)
			}
			if out := pollux("install", name); !strings.Contains(out, name+": ") {
				t.Error(out)
			}
			if out := pollux("install", "--list"); !strings.Contains(out, "equipped by") {
				t.Error(out)
			}
			// Not by the PATH: the plugin knows which pollux it was.
			hidden := make([]string, 0, len(b.env))
			for _, v := range b.env {
				hidden = append(hidden, strings.ReplaceAll(v, filepath.Dir(binary())+":", ""))
			}
			b.env = hidden
			b.f.start = func(*testing.T, *bench, []string) []string { return e.args(b) }
			b.f.running = "" // as a user starts them, nobody can ask them
			b.open("a")
			if data, err := os.ReadFile(b.file()); err != nil || !strings.Contains(string(data), `"name":"`+name+`"`) {
				t.Errorf("%s, %v", data, err)
			}
			if out := pollux("uninstall", name); strings.Contains(out, "leave ") {
				t.Error(out)
			}
			_ = filepath.WalkDir(b.root, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() && strings.Contains(d.Name(), "pollux") && !strings.HasPrefix(path, b.root+"/s/") && !strings.HasSuffix(path, ".elc") {
					t.Errorf("%s is left", path)
				}
				return nil
			})
		})
	}
}
