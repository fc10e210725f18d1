package editors

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNeovimMore(t *testing.T) {
	t.Parallel()
	vimMore(t, neovim(t))
	t.Run("language servers", func(t *testing.T) { neovimLanguageServers(t, neovim(t)) })
	t.Run("health", func(t *testing.T) { neovimHealth(t, neovim(t)) })
}

// The folders of language servers are roots, those that are added later too.
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
