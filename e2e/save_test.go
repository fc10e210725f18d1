package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/internal/agent/claude"
)

// saving connects as Claude Code does. save calls saveDocument and returns the answer.
func (b *bench) saving() (save func(name string) string, end func()) {
	b.t.Helper()
	var lock struct{ AuthToken string }
	var port int
	b.until("Claude Code's lock", func() bool {
		locks, _ := filepath.Glob(filepath.Join(b.home.Dir, ".claude", "ide", "*.lock"))
		if len(locks) != 1 {
			return false
		}
		port, _ = strconv.Atoi(strings.TrimSuffix(filepath.Base(locks[0]), ".lock"))
		data, err := os.ReadFile(locks[0])
		return err == nil && json.Unmarshal(data, &lock) == nil
	})
	c, err := claude.Dial(b.t.Context(), port, lock.AuthToken, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return func(name string) string {
		b.t.Helper()
		data, err := c.Call(b.t.Context(), "tools/call", map[string]any{"name": "saveDocument", "arguments": map[string]string{"filePath": b.path(name)}})
		if err != nil {
			b.t.Fatal(err)
		}
		return string(data)
	}, c.Close
}

// savesFor plays what an agent's saveDocument does to a file that the user has open and changes by typing (SPEC CC-17). dirty and clean wait for
// the editor's mark of unsaved changes.
func (b *bench) savesFor(name string, typed func(text string), dirty, clean func()) {
	b.t.Helper()
	save, end := b.saving()
	defer end()
	is := func(want string, parts ...string) {
		b.t.Helper()
		got := save(name)
		for _, part := range append(parts, `\"saved\":`+want) {
			if !strings.Contains(got, part) {
				b.t.Errorf("saveDocument says %s, without %s", got, part)
			}
		}
	}
	b.until("the file is known to be open", func() bool { return !strings.Contains(save(name), "not open") })
	is("true")
	typed("mine ")
	dirty()
	is("true")
	clean()
	saved := b.read(name)
	if !strings.HasPrefix(saved, "mine ") {
		b.t.Errorf("the file holds %q", saved)
	}
	typed("more ")
	dirty()
	b.write(name, "the text of others\n")
	is("false", "changed on disk")
	dirty()
	if got := b.read(name); got != "the text of others\n" {
		b.t.Errorf("what others wrote is gone: %q", got)
	}
}

// TestPageSaves: an agent has the page save, but never over what others have written.
func TestPageSaves(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "one\n", "b.txt": "two\n"})
	b.usesClaude()
	d := b.desk(b.serve())
	d.open("a.txt")
	d.open("b.txt") // a file behind another is saved as well
	b.savesFor("a.txt", func(text string) {
		d.Click(d.tab("a.txt"))
		d.cursor(1, 1, 0)
		d.Type(text)
		d.Click(d.tab("b.txt"))
	}, func() { d.Wait(d.tab("a.txt") + ".dirty") }, func() { d.Gone(d.tab("a.txt") + ".dirty") })
	d.Click(d.tab("a.txt"))
	d.WaitText("#conflict", "has changed on disk")
	d.WaitText(browser.ID("editor-content"), "more mine one")
}
