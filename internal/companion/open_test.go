package companion

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// SPEC C-6: what others remove, and bring back, drops out of the context and into it without a word of the editor's, also with its
// folder; and a file that did not exist when it was opened comes in.
func TestOpenFilesAreFollowedC6(t *testing.T) {
	o, dir, _ := options(t)
	c := start(t, o)
	c.followOpen() // as where an editor is attached
	a := agent.Connect(t, c.Info().DiscoveryFile)
	sub := filepath.Join(dir, "sub")
	file, later := filepath.Join(sub, "f"), filepath.Join(dir, "later")
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(what string, n int) {
		t.Helper()
		a.Context(what, func(files []agent.File) bool { return len(files) == n })
	}
	write(file)
	c.store.Report("w", state.Report{Active: file, Open: []string{file, later}, Front: true})
	hears("opened", 1)
	write(later)
	hears("made later", 2)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	hears("removed", 1)
	write(file)
	hears("back", 2)
	if err := os.RemoveAll(sub); err != nil {
		t.Fatal(err)
	}
	hears("removed with its folder", 1)
	write(file)
	hears("back with its folder", 2)
}
