//go:build unix

package editors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/copilot"
)

// SPEC GC-3: a proposal of Copilot CLI's is shown with a line that says why it cannot be edited, keys leave it alone, and it is accepted
// as it is.
func TestReadOnlyGC3(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"read-only": func(t *testing.T, f flavour) {
		b := newBench(t, f, map[string]string{"a.txt": nine})
		if err := os.Mkdir(filepath.Join(b.root, ".copilot"), 0o700); err != nil {
			t.Fatal(err)
		}
		b.open("a.txt")
		var found []string
		b.until("a lock for Copilot CLI", func() bool {
			found, _ = filepath.Glob(filepath.Join(b.root, ".copilot", "ide", "*.lock"))
			return len(found) == 1
		})
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		lock, err := copilot.Locks().Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		c, err := copilot.Dial(t.Context(), lock.Door())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		answer := make(chan string, 1)
		go func() {
			data, err := c.Call(t.Context(), "tools/call", map[string]any{"name": "open_diff", "arguments": map[string]string{
				"original_file_path": b.path("a.txt"), "new_file_contents": proposed, "tab_name": "tab",
			}})
			if err != nil {
				data = []byte(err.Error())
			}
			answer <- string(data)
		}()
		b.shows("a.txt", proposed)
		b.says("takes no edits")
		b.text("x")
		b.is(b.proposal("a.txt"), lines(proposed))
		b.accept()
		select {
		case got := <-answer:
			if !strings.Contains(got, "SAVED") {
				t.Error(got)
			}
		case <-time.After(time.Minute):
			t.Error("no answer")
		}
		b.calm("a.txt")
	}})
}
