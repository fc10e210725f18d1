package extensions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// The walk through code-analyzer in docs/extensions.md, from new to a call in a session of the real CLI, word by word.
func TestTheManualsWalk(t *testing.T) {
	root, err := peers.Root()
	must(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "extensions.md"))
	must(t, err)
	_, section, ok := strings.Cut(string(page), "## From nothing to a call in a session\n")
	section, _, ok2 := strings.Cut(section, "\n## ")
	if !ok || !ok2 {
		t.Fatal("the page has no such section")
	}
	h := newHouse(t)
	h.named()
	bin := t.TempDir()
	must(t, os.Symlink(h.pollux, filepath.Join(bin, "pollux")))
	write(t, filepath.Join(bin, "gemini"), "#!/bin/sh\nexec '"+strings.Join(h.gemini, "' '")+"' \"$@\"\n")
	must(t, os.Chmod(filepath.Join(bin, "gemini"), 0o700))
	m := model.Start(t)
	m.Script("Lint the file src/index.js", call("mcp_pollux-tester_lintFile", map[string]any{"file": "src/index.js"}), model.Text("There is a var."))
	said, blocks := "", 0
	for _, block := range regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks++
		if block[1] != "sh" {
			if said != block[2] {
				t.Errorf("the page shows\n%s\nand it was\n%s", block[2], said)
			}
			continue
		}
		env := append(cli.Variables(m), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, all, code := h.run([]string{"/bin/sh", "-e", "-c", block[2]}, "", env...)
		if said = out; code != 0 {
			t.Fatalf("%s\nexit code %d\n%s", block[2], code, all)
		}
	}
	if blocks < 8 || !strings.Contains(said, "There is a var.") {
		t.Errorf("%d blocks; gemini says %q", blocks, said)
	}
	if got := result(t, m, 0, "mcp_pollux-tester_lintFile"); !strings.Contains(got, `"rule": "no-var"`) {
		t.Errorf("in the session: %s", got)
	}
	if first := everything(t, m.Wait(t, 0, 2*time.Minute, nil)); strings.Contains(first, "visible in the whole function") || strings.Contains(first, "import argparse") {
		t.Error("the first prompt holds the document or the script")
	}
}
