package editors

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// finds waits until the companion knows what is found in a file: "unknown" where no tool looks at it.
func (b *bench) finds(name, want string) {
	b.Helper()
	client := b.control()
	got := ""
	defer func() {
		if b.Failed() {
			b.Logf("found is %s", got)
		}
	}()
	b.until(want, func() bool {
		snap, err := client.Context(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		found, known := snap.Diagnostics[b.path(name)]
		got = "unknown"
		if known {
			all := make([]string, 0, len(found))
			for _, d := range found {
				all = append(all, fmt.Sprintf("%d %d:%d %s", d.Severity, d.Start.Line+1, d.Start.Character+1, d.Message))
			}
			slices.Sort(all)
			got = strings.Join(all, ", ")
		}
		return got == want
	})
}

// TestFindings: what the editor's tools find is known, and what nobody looks at is not known.
func TestFindings(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.txt": "one\n\t😀 two\nthree\n", "b.txt": "b\n"}
	t.Run("Neovim", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, neovim(t), files)
		b.open("a.txt", "b.txt")
		b.finds("a.txt", "unknown")
		set := func(list string) {
			b.ex("lua vim.diagnostic.set(vim.api.nvim_create_namespace('x'), 0, " + list + ")")
		}
		set("{{lnum = 1, col = 6, severity = 1, message = 'wrong'}, {lnum = 0, col = 0, severity = 2, message = 'odd'}}")
		b.finds("a.txt", "1 2:5 wrong, 2 1:1 odd")
		set("{}")
		b.finds("a.txt", "")
		b.finds("b.txt", "unknown")
		b.ex("bdelete")
		b.finds("a.txt", "unknown")
	})
	t.Run("Vim", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, vim(t), files)
		b.open("a.txt", "b.txt")
		b.finds("a.txt", "unknown")
		b.ex(`set errorformat=%f:%l:%c:%t:%m | cgetexpr ['a.txt:2:7:E:wrong', 'a.txt:1:1:W:odd']`)
		b.finds("a.txt", "1 2:5 wrong, 2 1:1 odd")
		b.finds("b.txt", "unknown")
		b.ex("cgetexpr []")
		b.finds("a.txt", "unknown") // an empty list says nothing of any file
		b.ex("let g:ale_buffer_info = {bufnr('%'): {'loclist': []}} | doautocmd User ALELintPost")
		b.finds("a.txt", "")
		b.ex("let g:ale_buffer_info = {bufnr('%'): {'loclist': [{'lnum': 3, 'col': 2, 'type': 'W', 'text': 'hm', 'linter_name': 'x'}]}} | doautocmd User ALELintPost")
		b.finds("a.txt", "2 3:2 hm")
	})
	t.Run("micro", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, micro(t), files)
		b.write("../c/micro/init.lua", `function init() linter.makeLinter("grep", "unknown", "grep", {"-Hn", "wrong", "%f"}, "%f:%l:%m") end`+"\n")
		b.open("a.txt")
		b.finds("a.txt", "unknown")
		b.text("wrong ")
		b.keys("C-s")
		b.finds("a.txt", "1 1:1 wrong one")
		b.keys("Home", "DC", "C-s")
		b.finds("a.txt", "")
	})
	t.Run("Emacs", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, emacs(t).with(`(progn (require 'flymake) (defvar bench-found nil) (defun bench-check (report &rest _) (funcall report (mapcar (lambda (f) (flymake-make-diagnostic (current-buffer) (nth 0 f) (nth 1 f) (nth 2 f) (nth 3 f))) bench-found))))`), files)
		b.open("a.txt")
		b.finds("a.txt", "unknown")
		b.eval(`(progn (setq bench-found '((8 11 :error "wrong") (1 4 :warning "odd"))) (add-hook 'flymake-diagnostic-functions #'bench-check nil t) (flymake-mode 1) (flymake-start))`)
		b.finds("a.txt", "1 2:5 wrong, 2 1:1 odd")
		b.eval(`(progn (setq bench-found nil) (flymake-start))`)
		b.finds("a.txt", "")
		b.keys("C-x", "k", "Enter")
		b.finds("a.txt", "unknown")
	})
}
