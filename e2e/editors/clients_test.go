package editors

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/internal/peers"
)

// chromium opens the page that pollux has opened for the user in a real
// browser, and keeps it for all diffs of the test.
func (b *bench) chromium() *browser.Page {
	b.Helper()
	var address string
	b.until("the page", func() bool {
		data, err := os.ReadFile(filepath.Join(b.root, "opened"))
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#code=[\w-]+`).FindString(string(data))
		return err == nil && address != ""
	})
	br := browser.Start(b)
	b.Cleanup(br.Stop)
	return br.Open(b, address)
}

// plainTier is what a client without a plugin has: a diff on the page, taken
// and refused there by clicks, and by the client's own commands.
func plainTier(b *bench, display, cursor string, command func(name string)) {
	b.Helper()
	data, err := os.ReadFile(b.file())
	if err != nil || !strings.Contains(string(data), `"displayName":"`+display+`"`) {
		b.Errorf("%s, %v", data, err)
	}
	a := b.connect()
	b.sees(a, cursor)
	a.OpenDiff(b.path("a.txt"), "new\n")
	p := b.chromium()
	p.WaitText(browser.ID("diff-new"), "new")
	p.Click(browser.ID("accept"))
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != "new\n" {
		b.Errorf("%+v", o)
	}
	a.OpenDiff(b.path("a.txt"), "bad\n")
	p.WaitText(browser.ID("diff-new"), "bad")
	p.Click(browser.ID("reject"))
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		b.Errorf("%+v", o)
	}
	if command == nil {
		return
	}
	a.OpenDiff(b.path("a.txt"), "by command\n")
	p.WaitText(browser.ID("diff-new"), "by command")
	command("pollux.accept")
	if o := a.Outcome(); o.Content != "by command\n" {
		b.Errorf("%+v", o)
	}
	a.OpenDiff(b.path("a.txt"), "by command, not\n")
	p.WaitText(browser.ID("diff-new"), "not")
	command("pollux.reject")
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		b.Errorf("%+v", o)
	}
	a.Quiet()
}

// eglot, without a plugin: it asks where point is when the user pauses.
func TestEglot(t *testing.T) {
	t.Parallel()
	eglot := peers.Need(t, peers.Eglot)
	peers.Need(t, peers.Chromium)
	f := emacs(t)
	program := peers.Need(t, peers.Emacs)
	f.running, f.yes = `(if (and (featurep 'eglot) (eglot-current-server)) 1 0)`, "1"
	f.start = func(_ *testing.T, b *bench, files []string) []string {
		lisp := fmt.Sprintf(`(progn (require 'server) (setq inhibit-startup-screen t server-socket-dir %q server-name "s" make-backup-files nil auto-save-default nil)
		  (dolist (dir (file-expand-wildcards (concat (file-name-directory (directory-file-name (file-name-directory %q))) "*")))
		    (when (file-expand-wildcards (concat dir "/*.el")) (add-to-list 'load-path dir)))
		  (server-start) (require 'eglot) (setq eldoc-idle-delay 0.1 eglot-send-changes-idle-time 0.1)
		  (add-to-list 'eglot-server-programs '(text-mode . ("pollux" "lsp")))
		  (add-hook 'text-mode-hook #'eglot-ensure))`, b.root+"/r", eglot)
		return append([]string{program, "-Q", "-nw", "--eval", lisp}, files...)
	}
	b := newBench(t, f, map[string]string{"a.txt": "one\ntwo 😀 x\n"})
	b.browse()
	b.open("a.txt")
	b.keys("C-n", "C-e")
	b.is("(line-number-at-pos)", "2")
	plainTier(b, "Editor", "a.txt 2:9", func(name string) {
		b.eval(`(progn (eglot-execute-command (eglot-current-server) "` + name + `" []) 1)`)
	})
	b.keys("C-x", "C-c") // eglot says nothing at its end
	b.until("the end", func() bool { return len(b.files()) == 0 })
}

// Neovim's built-in client, without a plugin.
func TestNeovimClient(t *testing.T) {
	t.Parallel()
	peers.Need(t, peers.Chromium)
	f := neovim(t)
	f.running, f.yes = `luaeval('#vim.lsp.get_active_clients()')`, "1"
	program := peers.Need(t, peers.Neovim)
	f.start = func(t *testing.T, b *bench, files []string) []string {
		config := b.root + "/lsp.lua"
		const lua = `
local id
vim.api.nvim_create_autocmd('BufReadPost', { callback = function(event)
  id = id or vim.lsp.start_client({ name = 'pollux', cmd = { 'pollux', 'lsp' }, root_dir = vim.loop.cwd(),
    workspace_folders = { { uri = vim.uri_from_fname(vim.loop.cwd()), name = 'p' } } })
  vim.lsp.buf_attach_client(event.buf, id)
end })
vim.api.nvim_create_autocmd('CursorHold', { callback = function() vim.lsp.buf.document_highlight() end })
vim.o.updatetime = 100
`
		if err := os.WriteFile(config, []byte(lua), 0o600); err != nil {
			t.Fatal(err)
		}
		return append([]string{program, "--clean", "-n", "-i", "NONE", "--listen", filepath.Join(b.root, "n"), "--cmd", "luafile " + config, "--cmd", "set shortmess+=I"}, files...)
	}
	b := newBench(t, f, map[string]string{"a.txt": "one\ntwo 😀 x\n"})
	b.browse()
	b.open("a.txt")
	b.text("2G$")
	// It also asks in the editor, by showMessageRequest; nobody waits for the answer.
	plainTier(b, "Neovim", "a.txt 2:8", nil)
	b.until("the end of Neovim and its server", func() bool {
		b.keys("Enter") // leaves a question without a choice
		b.text(":qa!\n")
		return len(b.files()) == 0
	})
}
