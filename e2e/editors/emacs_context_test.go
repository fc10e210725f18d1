package editors

import (
	"os"
	"strings"
	"testing"
)

// script puts a program of the user's own into the PATH.
func (b *bench) script(name, text string) {
	b.Helper()
	dir := b.root + "/bin"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		b.Fatal(err)
	}
	for i, v := range b.env {
		if rest, ok := strings.CutPrefix(v, "PATH="); ok && !strings.Contains(v, dir) {
			b.env[i] = "PATH=" + dir + ":" + rest
		}
	}
}

// soon has Emacs evaluate something as a timer would.
func (b *bench) soon(lisp string) {
	b.Helper()
	b.eval("(run-at-time 0 nil (lambda () (let ((inhibit-message t)) " + lisp + ")))")
}

// In the CLI's own terminal the last file stays, with its selection: in the
// one that pollux-run opens and in any that has the CLI in its foreground.
func emacsCLITerminal(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "first second\n", "b": "b\n"})
	b.script("gemini", "echo ready; while read -r line; do echo \"got $line\"; done\n")
	b.open("a.go", "b")
	a := b.connect()
	b.soon(`(delete-other-windows) (switch-to-buffer "a.go")`)
	b.sees(a, "a.go 1:1")
	b.keys("C-@", "M-f")
	b.sees(a, `a.go 1:6 "first"`)
	b.mx("pollux-run")
	b.is("(buffer-name)", "*gemini: p*")
	b.is(`(with-current-buffer "*gemini: p*" (if (string-match-p "ready" (buffer-string)) 1 0))`, "1")
	b.pause(500)
	b.sees(a, `a.go 1:6 "first"`)
	b.eval(`(kill-buffer "b")`) // what closes meanwhile is told
	a.Context("one file", func(files []agentFile) bool { return len(files) == 1 })
	b.sees(a, `a.go 1:6 "first"`)
	b.soon(`(ansi-term "/bin/sh" "mine")`)
	b.sees(a, "none")
	b.is(`(with-current-buffer "*mine*" (if (string-match-p "[$#]" (buffer-string)) 1 0))`, "1")
	b.text("gemini\r")
	b.is(`(with-current-buffer "*mine*" (if (string-match-p "^ready" (buffer-string)) 1 0))`, "1")
	b.text("x")
	b.sees(a, `a.go 1:6 "first"`)
	b.eval(`(kill-buffer "a.go")`)
	a.Context("no file", func(files []agentFile) bool { return len(files) == 0 })
}

// What other programs, dired or the user do with files.
func emacsFiles(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"}, "a", "b", "c", "d")
	b.soon(`(delete-other-windows) (switch-to-buffer "a")`)
	only := func(want string) {
		t.Helper()
		a.Context("the files "+want, func(files []agentFile) bool {
			names := ""
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
				for _, file := range files {
					if file.Path == b.path(name) {
						names += name
					}
				}
			}
			return names == want && len(files) == len(want)
		})
	}
	only("abcd")
	if err := os.Remove(b.path("b")); err != nil { // elsewhere
		t.Fatal(err)
	}
	only("acd")
	if err := os.Rename(b.path("c"), b.path("e")); err != nil {
		t.Fatal(err)
	}
	only("ad")
	b.keys("C-x", "d", "Enter")
	b.sees(a, "none")
	b.is(`(progn (dired-goto-file (expand-file-name "d")) (set-window-point (selected-window) (point)) (dired-get-filename t t))`, "d")
	b.text("R")
	b.is("(if (active-minibuffer-window) 1 0)", "1")
	b.text("f\r")
	only("af")
	b.keys("C-x", "b")
	b.text("f\r")
	b.sees(a, "f 1:1")
	if err := os.Remove(b.path("f")); err != nil { // the active one
		t.Fatal(err)
	}
	b.sees(a, "none")
	only("a")
	b.keys("C-x", "b")
	b.text("a\r")
	b.sees(a, "a 1:1")
	b.keys("C-x", "C-w")
	b.text("g\r")
	b.sees(a, "g 1:1")
	only("g")
}

// Positions are the file's, whatever part or copy of the buffer is looked at.
func emacsNarrowed(t *testing.T, f flavour) {
	b, a := user(t, f.with("(put 'narrow-to-region 'disabled nil)"), map[string]string{"a.go": "one\ntwo\nthr😀ee\nfour\n"}, "a.go")
	b.keys("C-n", "C-n", "C-@", "C-e")
	b.sees(a, `a.go 3:8 "thr😀ee"`)
	b.keys("C-x", "n", "n")
	b.is("(buffer-narrowed-p)", "t")
	b.quit() // which throws away what is typed after it too soon
	b.sees(a, "a.go 3:8")
	b.keys("C-a", "C-f")
	b.sees(a, "a.go 3:2")
	b.keys("C-@", "C-e")
	b.sees(a, `a.go 3:8 "hr😀ee"`)
	b.quit()
	b.sees(a, "a.go 3:8")
	b.keys("C-x", "4", "c") // an indirect buffer beside it
	b.is("(list (buffer-name) (buffer-narrowed-p))", "(a.go<2> t)")
	b.keys("C-a")
	b.sees(a, "a.go 3:1")
	b.keys("C-x", "n", "w", "C-n")
	b.sees(a, "a.go 4:1")
	a.Context("one file", func(files []agentFile) bool { return len(files) == 1 })
	b.offer(a, "a.go", "new\n")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is("(list (length (window-list)) (buffer-name))", "(2 a.go<2>)")
	b.write("a.go", "new\n")
	b.is(`(with-current-buffer "a.go" (save-restriction (widen) (buffer-string)))`, "new\n")
}

// A selection is what Emacs shows as one.
func emacsRegions(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "one two\nthree\n\tfour\n"}, "a.go")
	b.keys("C-x", "h") // the whole buffer
	b.sees(a, `a.go 1:1 "one two\nthree\n\tfour\n"`)
	b.quit()
	b.sees(a, "a.go 1:1")
	b.keys("C-@", "M-f", "C-x", "C-x") // from the other end
	b.sees(a, `a.go 1:1 "one"`)
	b.quit()
	b.sees(a, "a.go 1:1")
	b.mx("transient-mark-mode")
	b.is("transient-mark-mode", "nil")
	b.keys("C-@", "M-f")
	b.sees(a, "a.go 1:4") // a mark alone selects nothing then
	b.keys("C-@", "C-@", "M-f")
	b.sees(a, `a.go 1:8 " two"`) // but for one command more
	b.quit()
	b.is("(if mark-active 1 0)", "0")
	b.mx("transient-mark-mode")
	b.is("transient-mark-mode", "t")
	b.sees(a, "a.go 1:8")
	b.keys("C-a", "C-@", "C-n", "C-x", "Space", "C-f", "C-f")
	b.is("rectangle-mark-mode", "t")
	b.sees(a, `a.go 2:3 "on\nth"`)
	b.quit()
	b.sees(a, "a.go 2:3")
	b.keys("C-@", "C-f")
	b.sees(a, `a.go 2:4 "r"`)
	b.text("typed") // takes the selection away
	b.sees(a, "a.go 2:9")
}

// D-4: projects by .git, by project.el once it is there, by a language
// server's own root, and by the user's function.
func emacsRoots(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "../git/.git/HEAD": "", "../git/deep/x": "", "../mark/.root": "", "../mark/deep/y": "", "../srv/z/z": "", "../own/w": ""})
	b.open("a")
	roots := func(names ...string) {
		t.Helper()
		want := map[string]bool{b.project: true}
		for _, name := range names {
			want[b.root+"/"+name] = true
		}
		b.until("the folders "+strings.Join(names, " "), func() bool {
			got := strings.Split(b.eval(`(getenv "GEMINI_CLI_IDE_WORKSPACE_PATH")`), ":")
			for _, dir := range got {
				if !want[dir] {
					return false
				}
			}
			return len(got) == len(want)
		})
	}
	visit := func(file string) {
		t.Helper()
		b.soon(`(find-file "` + b.root + "/" + file + `")`)
	}
	visit("git/deep/x")
	roots("git")
	b.eval(`(progn (require 'project) (defvar eglot-lsp-context nil)
	  (add-hook 'project-find-functions (lambda (dir)
	    (cond ((and eglot-lsp-context (string-match-p "/srv/" dir)) (cons 'transient "` + b.root + `/srv/"))
	          ((locate-dominating-file dir ".root") (cons 'transient (locate-dominating-file dir ".root")))))))`)
	visit("mark/deep/y")
	roots("git", "mark")
	b.eval(`(fset 'eglot-managed-p (lambda () (string-match-p "/srv/" default-directory)))`) // as eglot has it
	visit("srv/z/z")
	roots("git", "mark", "srv")
	b.eval(`(setq pollux-roots-function (lambda () (and (string-match-p "/own/" default-directory) default-directory)))`)
	visit("own/w")
	roots("own")
}
