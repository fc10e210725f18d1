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

// plainTier is what a client without a plugin has: a diff of the file that
// its cursor is in, on the page, taken and refused there by clicks, and by the
// client's own commands.
func plainTier(b *bench, display, cursor string, command func(name string)) {
	b.Helper()
	b.called(display)
	a := b.connect()
	b.sees(a, cursor)
	file, _, _ := strings.Cut(cursor, " ")
	a.OpenDiff(b.path(file), "new\n")
	p := b.chromium()
	p.WaitText(browser.ID("diff-new"), "new")
	p.Click(browser.ID("accept"))
	b.accepted(a, file, "new\n")
	a.OpenDiff(b.path(file), "bad\n")
	p.WaitText(browser.ID("diff-new"), "bad")
	p.Click(browser.ID("reject"))
	b.rejected(a, file)
	if command == nil {
		return
	}
	a.OpenDiff(b.path(file), "by command\n")
	p.WaitText(browser.ID("diff-new"), "by command")
	command("pollux.accept")
	b.accepted(a, file, "by command\n")
	a.OpenDiff(b.path(file), "by command, not\n")
	p.WaitText(browser.ID("diff-new"), "not")
	command("pollux.reject")
	b.rejected(a, file)
	a.Quiet()
}

// called checks what the CLI is told as the editor's name, a pattern.
func (b *bench) called(display string) {
	b.Helper()
	data, err := os.ReadFile(b.file())
	if err != nil || !regexp.MustCompile(`"displayName":"(`+display+`)"`).Match(data) {
		b.Errorf("%s, %v", data, err)
	}
}

// recipe is the configuration that the documentation gives for a client: the
// first block of code below its name.
func recipe(t *testing.T, client string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository(t), "docs", "editors", "lsp.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, named := strings.Cut(string(page), "\n**"+client+"**")
	_, rest, opened := strings.Cut(rest, "\n```")
	_, rest, ok := strings.Cut(rest, "\n")
	text, _, closed := strings.Cut(rest, "\n```\n")
	if !named || !opened || !ok || !closed {
		t.Fatalf("docs/editors/lsp.md has no recipe for %s", client)
	}
	return text + "\n"
}

// eglot, without a plugin: it asks where point is when the user pauses.
func TestEglot(t *testing.T) {
	t.Parallel()
	eglot := peers.Need(t, peers.Eglot)
	peers.Need(t, peers.Chromium)
	f := emacs(t)
	program := peers.Need(t, peers.Emacs)
	f.running, f.yes = `(if (and (featurep 'eglot) (eglot-current-server)) 1 0)`, "1"
	f.start = func(t *testing.T, b *bench, files []string) []string {
		lisp := fmt.Sprintf(`(progn (require 'server) (setq inhibit-startup-screen t server-socket-dir %q server-name "s" make-backup-files nil auto-save-default nil)
		  (unless (locate-library "eglot") ; a part of Emacs since 29
		    (dolist (dir (file-expand-wildcards (concat (file-name-directory (directory-file-name (file-name-directory %q))) "*")))
		      (when (file-expand-wildcards (concat dir "/*.el")) (add-to-list 'load-path dir))))
		  (setq eldoc-idle-delay 0.1 eglot-send-changes-idle-time 0.1)
		  %s (autoload 'eglot-ensure "eglot") (server-start))`, b.root+"/r", eglot, recipe(t, "eglot"))
		return append([]string{program, "-Q", "-nw", "--eval", interpreted, "--eval", lisp}, files...)
	}
	b := newBench(t, f, map[string]string{"a.txt": "one\ntwo 😀 x\n"})
	b.browse()
	b.open("a.txt")
	b.keys("C-n", "C-e")
	b.is("(line-number-at-pos)", "2")
	plainTier(b, "Editor|Eglot", "a.txt 2:9", func(name string) {
		b.eval(`(progn (eglot-execute-command (eglot-current-server) "` + name + `" []) 1)`)
	})
	b.keys("C-x", "C-c") // eglot says nothing at its end
	b.until("the end", func() bool { return len(b.files()) == 0 })
}

// neovimClient is Neovim's built-in client by the recipe of the documentation,
// without a plugin, and asking where the cursor is when the user pauses.
func neovimClient(t *testing.T) flavour {
	f := neovim(t)
	f.running, f.yes = `luaeval('#(vim.lsp.get_clients or vim.lsp.get_active_clients)()')`, "1"
	program := peers.Need(t, peers.Neovim)
	f.start = func(t *testing.T, b *bench, files []string) []string {
		b.write("../lsp.lua", recipe(t, "Neovim's own client")+`
vim.api.nvim_create_autocmd('CursorHold', { callback = function()
  if #(vim.lsp.get_clients or vim.lsp.get_active_clients)() > 0 then vim.lsp.buf.document_highlight() end
end })
vim.o.updatetime = 100
`)
		return append([]string{program, "--clean", "-n", "-i", "NONE", "--listen", b.root + "/n", "--cmd", "luafile " + b.root + "/lsp.lua", "--cmd", "set shortmess+=I"}, files...)
	}
	return f
}

// leave ends Neovim, and what of its client's questions is still open before it.
func (b *bench) leave() {
	b.Helper()
	b.until("the end of Neovim and its server", func() bool {
		b.keys("Enter") // leaves a question without a choice
		b.text(":qa!\n")
		return len(b.files()) == 0
	})
}

// Neovim's built-in client, without a plugin.
func TestNeovimClient(t *testing.T) {
	t.Parallel()
	peers.Need(t, peers.Chromium)
	b := newBench(t, neovimClient(t), map[string]string{"a.txt": "one\ntwo 😀 x and more\n"})
	b.browse()
	b.open("a.txt")
	b.text("2Gfx") // not at the line's end, where Neovim 0.10 counts bytes
	// It also asks in the editor, by showMessageRequest; nobody waits for the answer.
	plainTier(b, "Neovim", "a.txt 2:8", nil)
	b.leave()
}

// window/showMessageRequest in a client that has it: a question in the editor
// decides as the page does, and holds up nobody who decides elsewhere.
func TestNeovimQuestion(t *testing.T) {
	t.Parallel()
	b := newBench(t, neovimClient(t), map[string]string{"a.txt": "one\n", "b.txt": "b\n"})
	b.browse()
	b.open("a.txt")
	a := b.connect()
	b.text("0") // CursorHold comes once behind a key, and may have come before there was a client
	b.sees(a, "a.txt 1:1")
	question := func(file string) {
		t.Helper()
		b.tm.Until("the question about "+file, patience, func(screen string) bool {
			if before := screen; strings.Contains(screen, "\nPress ENTER or type command to continue") {
				b.keys("Enter") // once: the next one would answer the question
				screen = b.tm.Until("anything else", patience, func(screen string) bool { return screen != before })
			}
			screen = strings.TrimRight(screen, " \n")
			i := strings.LastIndex(screen, ": take this change?")
			return strings.HasSuffix(screen, "cancels):") && i > 0 && strings.HasSuffix(screen[:i], file+" – Gemini CLI #1")
		})
	}
	a.OpenDiff(b.path("a.txt"), "new\n")
	question("a.txt")
	b.text("1\n")
	b.accepted(a, "a.txt", "new\n")
	a.OpenDiff(b.path("b.txt"), "new b\n")
	question("b.txt")
	b.text("2\n")
	b.rejected(a, "b.txt")
	a.OpenDiff(b.path("a.txt"), "never answered\n")
	question("a.txt")
	b.acceptOn(b.page())
	b.accepted(a, "a.txt", "never answered\n")
	b.text("2\n") // too late
	a.OpenDiff(b.path("b.txt"), "after that\n")
	question("b.txt")
	b.text("1\n")
	b.accepted(a, "b.txt", "after that\n")
	a.Quiet()
	b.leave()
}
