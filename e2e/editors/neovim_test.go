package editors

import (
	"context"
	"os"
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
	}
}

// TestNeovim: what Neovim has alone.
func TestNeovim(t *testing.T) {
	playOn(t, []func(*testing.T) flavour{neovim}, map[string]func(*testing.T, flavour){"language servers": neovimLanguageServers, "health": neovimHealth})
}

// The folders of language servers are roots, also folders that are added later.
func neovimLanguageServers(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "../q/x": "", "../q2/x": ""})
	b.write("../server", "#!/bin/sh\nprintf 'Content-Length: 53\\r\\n\\r\\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"capabilities\":{}}}'\nexec cat >/dev/null\n")
	if err := os.Chmod(filepath.Join(b.root, "server"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.open("a")
	b.ex("lua vim.lsp.buf_attach_client(0, vim.lsp.start_client({ cmd = { '" + b.root + "/server' }, root_dir = '" + b.root + "/q' }))")
	b.is("luaeval('#vim.lsp.buf.list_workspace_folders()')", "1")
	b.ex("split")
	b.is("$GEMINI_CLI_IDE_WORKSPACE_PATH", b.project+":"+b.root+"/q")
	b.ex("lua vim.lsp.buf.add_workspace_folder('" + b.root + "/q2')")
	b.ex("quit")
	b.is("$GEMINI_CLI_IDE_WORKSPACE_PATH", b.project+":"+b.root+"/q:"+b.root+"/q2")
}

// :checkhealth pollux says how it is.
func neovimHealth(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	b.ex("checkhealth pollux")
	b.is("search('companion .* runs on port "+itoa(b.port())+"', 'nw') > 0", "1")
	b.is("search('no CLI is connected', 'nw') > 0", "1")
	b.ex("bwipeout!")
	b.connect()
	b.is(`luaeval("#require('pollux').state().sessions")`, "1")
	b.ex("checkhealth pollux")
	b.is("search('1 CLIs\\? \\(is\\|are\\) connected', 'nw') > 0", "1")
	b.ex("bwipeout!")
	b.ex("Pollux stop")
	b.is(b.f.running, "stopped")
	b.ex("checkhealth pollux")
	b.is("search('the companion is stopped', 'nw') > 0", "1")
}
