//go:build unix

package editors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// TestClaudeHearsProblems: what a tool of the editor's finds after Claude Code's edit reaches its model, and what was found before does not
// (SPEC CC-13).
func TestClaudeHearsProblems(t *testing.T) {
	peers.Need(t, peers.Claude)
	b := newBench(t, neovim(t), map[string]string{"a.txt": "odd\ntwo\n"})
	home := b.agentsHome()
	b.open("a.txt")
	// A linter that finds each line with "odd" or "wrong", whenever the text of the buffer is another one.
	b.write("../lint.lua", `
local ns = vim.api.nvim_create_namespace('lint')
local function lint()
  local found = {}
  for i, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    for _, word in ipairs({ 'odd', 'wrong' }) do
      if line:find(word) then
        found[#found + 1] = { lnum = i - 1, col = 0, severity = 1, message = 'never say ' .. word, source = 'lint' }
      end
    end
  end
  if vim.bo.buftype == '' then vim.diagnostic.set(ns, 0, found) end
end
vim.api.nvim_create_autocmd({ 'BufReadPost', 'TextChanged', 'FileChangedShellPost' }, { callback = lint })
lint()
`)
	b.ex("luafile " + b.root + "/lint.lua")
	b.finds("a.txt", "1 1:1 never say odd")
	ctl := b.control()
	claude := cli.StartClaude(b, home, b.project, "CLAUDE_CODE_AUTO_CONNECT_IDE=true")
	b.untilWithin(cliPatience, "a session", func() bool {
		sessions, err := ctl.Sessions(b.Context())
		return err == nil && len(sessions) == 1
	})

	call := func(name string, args map[string]any) model.Turn {
		return model.Turn{Calls: []model.Call{{Name: name, Args: args}}}
	}
	claude.Ask("change a.txt", call("Read", map[string]any{"file_path": b.path("a.txt")}),
		call("Edit", map[string]any{"file_path": b.path("a.txt"), "old_string": "two", "new_string": "wrong"}))
	b.shows("a.txt", "odd\nwrong\n")
	b.accept()
	b.calm("a.txt")
	b.finds("a.txt", "1 1:1 never say odd, 1 2:1 never say wrong")
	n, told := 0, ""
	b.untilWithin(cliPatience, "the problem in the model's words", func() bool {
		n++
		told = textOf(claude.Ask("and now? " + itoa(n)))
		return strings.Contains(told, "never say wrong")
	})
	if strings.Contains(told, "never say odd") {
		t.Errorf("the model is told what was there before its edit:\n%s", told)
	}
}

// agentsHome gives the user of the bench a home in which every agent has been used.
func (b *bench) agentsHome() cli.Home {
	b.Helper()
	home := cli.Home{Dir: b.root, Tmp: filepath.Join(b.root, "t")}
	if err := os.CopyFS(filepath.Join(b.root, ".gemini"), os.DirFS(filepath.Join(cli.NewHome(b).Dir, ".gemini"))); err != nil {
		b.Fatal(err)
	}
	home.Qwen(b)
	for _, folder := range []string{".claude", ".copilot", ".codex"} {
		if err := os.MkdirAll(filepath.Join(b.root, folder), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	return home
}

// textOf is all the text of a request.
func textOf(r *model.Request) string {
	var all strings.Builder
	for _, c := range r.Body.Contents {
		for _, p := range c.Parts {
			all.WriteString(p.Text + "\n")
		}
	}
	return all.String()
}
