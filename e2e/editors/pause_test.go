package editors

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
)

// TestPause: agents are told nothing of what the user looks at while sharing is paused, and the editor says so (C-8).
func TestPause(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"and resume": pauses})
}

func pauses(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	told := func(what string, files int) {
		t.Helper()
		a.Context(what, func(all []agent.File) bool { return len(all) == files })
	}
	line := map[string][2]string{
		"neovim": {`luaeval("require('pollux').statusline()")`, "Gemini 1"},
		"vim":    {"pollux#statusline()", "Gemini 1"},
		"emacs":  {"(substring-no-properties (pollux-mode-line))", " Pollux:Gemini 1"},
	}[f.name]
	b.step("before")
	told("the file", 1)
	b.is(line[0], line[1])
	b.step("the user pauses")
	b.command("pollux.pause")
	told("nothing", 0)
	b.is(line[0], line[1]+" paused")
	b.step("proposals come as ever")
	b.proposes(a)
	b.accept()
	b.accepted(a, "a.txt", proposed)
	b.calm("a.txt")
	told("nothing", 0)
	b.step("the same key resumes")
	b.command("pollux.pause")
	told("the file again", 1)
	b.is(line[0], line[1])
	b.step("the user pauses and resumes")
	b.command("pollux.pause")
	told("nothing again", 0)
	b.is(line[0], line[1]+" paused")
	b.command("pollux.resume")
	told("the file at last", 1)
	b.step("the key that the help proposes pauses and resumes")
	key := b.pauseKey()
	b.keys(key...)
	told("nothing by the key", 0)
	b.is(line[0], line[1]+" paused")
	b.keys(key...)
	told("the file by the key", 1)
	b.is(line[0], line[1])
	b.step("this agent is told nothing more")
	if err := b.control().Share(b.Context(), "gemini", "never"); err != nil {
		b.Fatal(err)
	}
	told("nothing once more", 0)
	b.is(line[0], line[1]+" not told: Gemini")
}

// pauseKey binds the key that the plugin's own help proposes, and returns it.
func (b *bench) pauseKey() []string {
	b.Helper()
	help := map[string]string{"neovim": "nvim/doc/pollux.txt", "vim": "vim/doc/pollux.txt", "emacs": "emacs/README.md"}[b.f.name]
	data, err := os.ReadFile(filepath.Join("../../plugins", help))
	if err != nil {
		b.Fatal(err)
	}
	if b.f.name == "emacs" {
		bind := regexp.MustCompile("`(\\(global-set-key .*?\\))`").FindSubmatch(data)
		if bind == nil || !strings.Contains(string(data), "`C-c g z`") {
			b.Fatal("the help proposes no key")
		}
		b.eval("(progn " + string(bind[1]) + " 1)")
		return []string{"C-c", "g", "z"}
	}
	bind := regexp.MustCompile(`(?m)^ +(.*<leader>gp.*)$`).FindSubmatch(data)
	if bind == nil {
		b.Fatal("the help proposes no key")
	}
	command := string(bind[1])
	if b.f.name == "neovim" {
		command = "lua " + command
	}
	b.ex(command)
	return []string{"\\", "g", "p"}
}
