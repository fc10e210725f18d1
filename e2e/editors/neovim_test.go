package editors

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

func neovim(t *testing.T) flavour {
	t.Helper()
	program := peers.Need(t, peers.Neovim)
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	return flavour{
		name: "neovim", display: "Neovim",
		user: func(b *bench) driver { return vi{b} },
		start: func(_ *testing.T, b *bench, files []string) []string {
			return append([]string{program, "--clean", "-n", "-i", "NONE", "--listen", filepath.Join(b.root, "n"),
				"--cmd", "set rtp^=" + filepath.Join(root, "plugins", "nvim"),
				"--cmd", "let g:pollux = {'idle': 100} | set shortmess+=I",
			}, files...)
		},
		running: `luaeval("require('pollux').state().status")`, yes: "running",
		messages: "execute('messages')", later: vimLater,
		eval: func(b *bench, expr string) string {
			// It waits as long as a question stands on the screen.
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			out, _ := exec.CommandContext(ctx, program, "--server", filepath.Join(b.root, "n"), "--remote-expr", expr).CombinedOutput()
			return strings.TrimRight(string(out), "\n")
		},
		ask: func(b *bench, command string) string {
			const lua = `(function() require("pollux").execute(_A, nil, function(r) vim.g.answer = vim.json.encode(r) end) return vim.g.answer or "" end)()`
			return b.eval("luaeval('" + lua + "', '" + command + "')")
		},
	}
}

func TestNeovim(t *testing.T) {
	t.Parallel()
	vimSuite(t, neovim(t))
}
