//go:build newest

package editors

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

// unpacked is a file of Debian's next release, which .ci/newest has unpacked aside.
func unpacked(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("POLLUX_NEWEST")
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || dir == "" || len(found) == 0 {
		t.Fatalf("no %s below POLLUX_NEWEST=%q: run .ci/newest (%v)", pattern, dir, err)
	}
	return found[0]
}

// Helix, by the recipe of the documentation: it asks where the cursor is when
// its user asks for code actions, and these decide.
func TestHelix(t *testing.T) {
	t.Parallel()
	peers.Need(t, peers.Chromium)
	unpacked(t, "usr/lib/hx/runtime")
	f := flavour{name: "helix", start: func(_ *testing.T, _ *bench, files []string) []string { return append([]string{"hx"}, files...) }}
	b := newBench(t, f, map[string]string{"a.go": "package a\n\nvar s = \"two 😀 x\"\n", "../c/helix/languages.toml": recipe(t, "Helix")})
	b.browse()
	b.env = append(b.env, "PATH="+b.root+"/bin:"+filepath.Dir(binary())+":"+os.Getenv("PATH"))
	b.open("a.go")
	a := b.connect()
	b.sees(a, "a.go") // opened, and no cursor yet
	b.text("2jfx; a") // what was found not selected, then code actions
	plainTier(b, "helix", "a.go 3:17", func(name string) {
		title := map[string]string{"pollux.accept": "Accept a.go – Gemini CLI #2", "pollux.reject": "Reject a.go – Gemini CLI #2"}[name]
		b.text(" a")
		b.tm.Wait(title, patience)
		if name == "pollux.reject" {
			b.keys("Down") // the first one is chosen at the start
		}
		b.keys("Enter")
	})
	b.text(":qa!\r")
	b.until("the end", func() bool { return len(b.files()) == 0 })
}

// lspMode starts Emacs with lsp-mode instead of a plugin, by the recipe of the documentation.
func lspMode(t *testing.T) flavour {
	f := emacs(t)
	program := peers.Need(t, peers.Emacs)
	elpa := filepath.Dir(unpacked(t, "usr/share/emacs/site-lisp/elpa-src/lsp-mode-*"))
	f.running, f.yes = `(if (and (featurep 'lsp-mode) (lsp-workspaces)) 1 0)`, "1"
	f.start = func(t *testing.T, b *bench, files []string) []string {
		b.write("../init.el", fmt.Sprintf(`(require 'server)
(setq inhibit-startup-screen t server-socket-dir %q server-name "s" make-backup-files nil auto-save-default nil)
(dolist (dir (file-expand-wildcards (concat %q "/*")))
  (add-to-list 'load-path dir)
  (dolist (file (file-expand-wildcards (concat dir "/*-autoloads.el"))) (load file nil t)))
(setq lsp-auto-guess-root t lsp-session-file (concat temporary-file-directory "session") lsp-warn-no-matched-clients nil
      lsp-enable-suggest-server-download nil lsp-idle-delay 0.1)
%s(server-start)
`, b.root+"/r", elpa, recipe(t, "lsp-mode")))
		return append([]string{program, "-Q", "-nw", "-l", b.root + "/init.el"}, files...)
	}
	return f
}

// lsp-mode. It has window/showMessageRequest but does not declare it, and so is not asked.
func TestLSPMode(t *testing.T) {
	t.Parallel()
	peers.Need(t, peers.Chromium)
	b := newBench(t, lspMode(t), map[string]string{"a.txt": "one\ntwo words x\n", ".git/HEAD": ""})
	b.browse()
	b.open("a.txt")
	b.keys("C-n", "C-e")
	// On a line without emoji: it counts characters where LSP counts UTF-16.
	plainTier(b, "emacs", "a.txt 2:12", func(name string) {
		b.eval(`(progn (lsp-workspace-command-execute "` + name + `" []) 1)`)
	})
	b.is("(if (active-minibuffer-window) 1 0)", "0")
	b.keys("C-x", "C-c")
	b.until("the end", func() bool { return len(b.files()) == 0 })
}
