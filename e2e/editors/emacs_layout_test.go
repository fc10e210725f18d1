package editors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// with has Emacs evaluate more once it has opened its files, as a user's init file would.
func (f flavour) with(lisp string) flavour {
	start := f.start
	f.start = func(t *testing.T, b *bench, files []string) []string {
		return append(start(t, b, files), "--eval", "(progn "+lisp+")")
	}
	return f
}

// mx types a command of Emacs's by name, once its prompt is there: a busy Emacs drops keys that come while it opens.
func (b *bench) mx(command string) {
	b.Helper()
	b.keys("M-x")
	b.is(asking, "1")
	b.text(command + "\r")
}

// frame opens one more frame in a terminal of its own.
func (b *bench) frame(dir string, args ...string) *terminal.Terminal {
	b.Helper()
	args = append([]string{"emacsclient", "--socket-name", b.root + "/r/s", "-t"}, args...)
	return terminal.Start(b, terminal.Options{Dir: dir, Env: b.env, Args: args})
}

// Each frame is its own user's view: the one that has keys is told, a diff
// opens there and leaves the others alone, and outlives its frame.
func emacsFrames(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\nsecond\n", "b": "b\nsecond\n"}, "a")
	b.sees(a, "a 1:1")
	second := b.frame(b.project, "b")
	b.sees(a, "b 1:1")
	b.keys("C-n")
	b.sees(a, "a 2:1")
	second.Keys("C-n", "C-f")
	b.sees(a, "b 2:2")
	b.keys("C-x", "3")
	b.is("(length (window-list))", "2")
	second.Keys("C-p")
	b.sees(a, "b 1:2")
	const shape = `(sort (mapcar (lambda (f) (length (window-list f 'no-minibuffer))) (filtered-frame-list (lambda (f) (frame-parameter f 'tty)))) '<)`
	b.is(shape, "(1 2)")
	b.offer(a, "a", "new a\n")
	b.is(shape, "(2 3)")
	second.Type("edited ")
	b.is(`(with-current-buffer "a <proposal>" (buffer-string))`, "edited new a\n")
	second.Keys("C-x", "5", "0") // the frame goes, the diff comes to the other one
	b.is(`(list (length (window-list)) (buffer-name) (buffer-string))`, "(3 a <proposal> edited new a\n)")
	b.keys("C-c", "C-c")
	b.accepted(a, "a", "edited new a\n")
	b.is("(list (length (window-list)) (buffer-name))", "(2 a)")
	b.is(buffers, "0")
	b.sees(a, "a 2:1")
}

// A daemon with two projects: both are roots; without a frame nothing is
// focused and diffs go to the page; its end is the companion's.
func emacsDaemon(t *testing.T, f flavour) {
	program := peers.Need(t, peers.Emacs)
	start := f.start
	f.start = func(t *testing.T, b *bench, files []string) []string {
		args := start(t, b, files)
		args = append([]string{program, "--fg-daemon=" + b.root + "/r/s"}, args[1:]...)
		for i, arg := range args {
			if arg == "-nw" {
				args = append(args[:i], args[i+1:]...)
				break
			}
		}
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "(server-start)", "nil") // a daemon has done so
		}
		return args
	}
	b := newBench(t, f, map[string]string{".git/config": "", "a": "a\n", "../q/.git/config": "", "../q/sub/x": "x\n"})
	b.browse()
	b.open()
	b.is(`(getenv "GEMINI_CLI_IDE_WORKSPACE_PATH")`, b.project)
	one := b.frame(b.project, "a")
	a := b.connect()
	b.sees(a, "a 1:1")
	two := b.frame(filepath.Join(b.root, "q"), "sub/x")
	b.sees(a, "x 1:1")
	b.is(`(getenv "GEMINI_CLI_IDE_WORKSPACE_PATH")`, b.project+":"+b.root+"/q")
	if data, err := os.ReadFile(b.file()); err != nil || !strings.Contains(string(data), b.project+":"+b.root+"/q") {
		t.Errorf("%s, %v", data, err)
	}
	two.Keys("C-f") // Emacs gives a new frame the keys of the one before until it has had one of its own
	b.sees(a, "x 1:2")
	one.Keys("C-e")
	b.sees(a, "a 1:2")
	two.Keys("C-x", "C-c")
	one.Keys("C-x", "C-c")
	b.sees(a, "none")
	a.OpenDiff(b.path("a"), "new\n")
	b.acceptOn(b.page())
	b.accepted(a, "a", "new\n")
	one = b.frame(b.project, "a")
	b.sees(a, "a 1:1")
	one.Keys("C-f")
	b.sees(a, "a 1:2")
	b.offer(a, "a", "newer\n")
	one.Keys("C-c", "C-k")
	b.rejected(a, "a")
	b.eval("(run-at-time 0.1 nil #'kill-emacs)")
	b.until("the end", func() bool { return len(b.files()) == 0 })
}

// layoutLisp is what of the user's must be as it was: windows with their
// buffers, points, starts and sizes, marks, folds, registers, the kill ring,
// and which buffers come first.
const layoutLisp = `(defun bench-layout ()
  (list (mapcar (lambda (w) (list (buffer-name (window-buffer w)) (window-point w) (window-start w) (window-edges w) (window-hscroll w)
                                  (mapcar (lambda (b) (buffer-name (car b))) (window-prev-buffers w)))) (window-list nil 'no-minibuffer (frame-first-window)))
        (buffer-name (window-buffer (selected-window)))
        (mapcar (lambda (name) (with-current-buffer name (list (point) (mark t) (mapcar #'marker-position mark-ring)
            (sort (mapcar (lambda (o) (list (overlay-start o) (overlay-end o) (overlay-get o 'invisible)))
                          (seq-filter (lambda (o) (overlay-get o 'invisible)) (overlays-in (point-min) (point-max)))) (lambda (x y) (< (car x) (car y)))))))
                '("a.org" "b.el"))
        (mapcar (lambda (r) (list (car r) (if (markerp (cdr r)) (marker-position (cdr r)) (format "%s" (cdr r))))) register-alist)
        (length kill-ring) (car kill-ring)
        (mapcar #'buffer-name (seq-remove (lambda (b) (string-match-p "^ " (buffer-name b))) (buffer-list)))
        (buffer-name (other-buffer))))
  (setq enable-recursive-minibuffers nil bench-before nil)`

// Folds and marks outlive the CLI's write, as the windows do.
func emacsWritten(t *testing.T, f flavour) {
	const old = "* one\ntext\n* two\nmore\nlines\n* three\nend\n"
	scene := f.user(nil).scenes()[0]
	b, a := user(t, scene.editor(f), map[string]string{"a.org": old, "b.el": strings.Repeat("(defun f ()\n  1)\n", 60)}, scene.open...)
	scene.do(b)
	b.pause(300)
	b.eval("(setq bench-before (bench-layout))")
	text := strings.Replace(old, "end", "END", 1)
	b.offer(a, "a.org", text)
	b.accept()
	b.accepted(a, "a.org", text)
	b.is("(length (window-list))", "3")
	b.write("a.org", text)
	b.is(`(with-current-buffer "a.org" (string-match-p "END" (buffer-string)))`, itoa(strings.Index(text, "END")))
	for _, part := range []string{"0", "2"} { // windows; points, marks and folds
		b.is("(if (equal (nth "+part+" bench-before) (nth "+part+" (bench-layout))) \"same\" (list bench-before (bench-layout)))", "same")
	}
}

// A diff does not open in a side window, where a tree or a terminal stands, and does not take it away;
// its sides are laid out as the user wants.
func emacsSideWindow(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n"}, "a.go")
	b.eval(`(progn (with-current-buffer (get-buffer-create "*side*") (insert "side"))
	  (select-window (display-buffer-in-side-window (get-buffer "*side*") '((side . left) (dedicated . t)))))`)
	b.is("(list (length (window-list)) (buffer-name))", "(2 *side*)")
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is("(list (length (window-list)) (buffer-name))", "(3 a.go <proposal>)")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is("(list (length (window-list)) (buffer-name) (window-parameter nil 'window-side))", "(2 *side* left)")

	// One above the other where the user wants it, and in narrow frames.
	for _, narrow := range []func(){
		func() { b.eval("(setq pollux-layout 'below)") },
		func() {
			b.tm.Resize(80, 40)
			b.is("(list (setq pollux-layout (eval (car (get 'pollux-layout 'standard-value)))) (frame-width))", "(fitting 80)")
		},
	} {
		narrow()
		a.OpenDiff(b.path("a.go"), "newer\n")
		b.is("(list (length (window-list)) (buffer-name))", "(3 a.go <proposal>)")
		b.is(`(mapcar (lambda (edge) (if (= (funcall edge (window-edges (get-buffer-window "a.go <before>"))) (funcall edge (window-edges (get-buffer-window "a.go <proposal>")))) "same" "other")) '(car cadr))`, "(same other)")
		b.keys("C-c", "C-k")
		a.Outcome()
		b.is("(list (length (window-list)) (buffer-name) (window-parameter nil 'window-side))", "(2 *side* left)")
	}
}

// A diff that is decided from another tab of the tab bar gives its own tab's windows back.
func emacsTabBar(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n", "b": "b\n"}, "a.go")
	b.keys("C-x", "t", "2")
	b.is("(length (frame-parameter nil 'tabs))", "2")
	b.keys("C-x", "2")
	b.soon(`(switch-to-buffer (find-file-noselect "b"))`)
	const layout = "(list (mapcar (lambda (w) (list (buffer-name (window-buffer w)) (window-edges w))) (window-list)) (buffer-name))"
	b.is("(list (length (window-list)) (buffer-name))", "(2 b)")
	before := b.eval(layout)
	b.offer(a, "a.go", "new\n")
	b.keys("C-x", "t", "o")
	b.is("(list (length (window-list)) (buffer-name))", "(1 a.go)")
	b.mx("pollux-reject")
	b.rejected(a, "a.go")
	b.is(buffers, "0")
	b.is("(list (length (window-list)) (buffer-name))", "(1 a.go)")
	b.keys("C-x", "t", "o")
	b.is(layout, before)
}

// A terminal beside a diff goes on where its output has come to.
func emacsTerminalFollows(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n"}, "a.go")
	b.eval(`(progn (split-window-below) (other-window 1) (require 'term) (switch-to-buffer (make-term "sh" "/bin/sh")) (term-mode) (term-char-mode))`)
	const atEnd = `(with-current-buffer "*sh*" (= (window-point (get-buffer-window "*sh*")) (marker-position (process-mark (get-buffer-process "*sh*")))))`
	b.is(atEnd, "t")
	b.offer(a, "a.go", "new\n")
	b.eval(`(process-send-string "sh" "echo mar''ker; echo; echo\n")`)
	b.is(`(with-current-buffer "*sh*" (if (string-match-p "^marker" (buffer-string)) 1 0))`, "1")
	b.keys("C-c", "C-k")
	a.Outcome()
	b.is("(list (length (window-list)) (buffer-name))", "(2 *sh*)")
	b.is(atEnd, "t")
	b.text("echo al''ive\r")
	b.is(`(with-current-buffer "*sh*" (if (string-match-p "^alive" (buffer-string)) 1 0))`, "1")
}

// Ediff's own commands decide single changes; the user's own sessions of
// Ediff have Ediff's own keys.
func emacsEdiff(t *testing.T, f flavour) {
	old := "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
	b, a := user(t, f, map[string]string{"a.go": old, "b.go": "b\n"}, "a.go")
	a.OpenDiff(b.path("a.go"), strings.NewReplacer("one", "ONE", "nine", "NINE").Replace(old))
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-x", "o")
	b.is(`(if (string-match-p "Ediff" (buffer-name)) 1 0)`, "1")
	b.text("a") // the first change, as it was
	b.is(`(with-current-buffer "a.go <proposal>" (string-match-p "one" (buffer-string)))`, "0")
	b.text("n")
	b.keys("C-c", "C-c")
	b.accepted(a, "a.go", strings.Replace(old, "nine", "NINE", 1))
	b.is(windows, "(1 a.go)")
	b.eval(`(run-at-time 0 nil (lambda () (let ((ediff-window-setup-function 'ediff-setup-windows-plain)) (ediff-files "a.go" "b.go"))))`)
	b.is(`(if (string-match-p "Ediff" (buffer-name)) (symbol-name (key-binding "q")) (buffer-name))`, "ediff-quit")
	a.OpenDiff(b.path("b.go"), "new b\n") // while that is on show
	b.is("(buffer-name)", "b.go <proposal>")
	b.keys("C-c", "C-k")
	a.Outcome()
	b.is(`(if (string-match-p "Ediff" (buffer-name)) (symbol-name (key-binding "q")) (buffer-name))`, "ediff-quit")
}

// What has no other side is one change, for which Emacs stops to run no program; another layout says the same.
func emacsOneSided(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "one\ntwo\n", "count": ""}, "a.go")
	diff, runs := b.path("count"), b.path("runs")
	b.shell(fmt.Sprintf(`printf '#!/bin/sh\necho >>%s\nexec diff "$@"\n' >count && chmod +x count`, runs))
	b.is(fmt.Sprintf("(progn (require 'ediff) (setq ediff-diff-program %q) 1)", diff), "1")
	for _, layout := range []string{"beside", "unified"} {
		b.is(fmt.Sprintf("(setq pollux-layout '%s)", layout), layout)
		for _, step := range []struct {
			name, text string
			runs       bool
		}{{"new.go", "one\ntwo\nthree", false}, {"new.go", "one\n", false}, {"new.go", "\n", false}, {"a.go", "", false}, {"a.go", "one\nTWO\n", true}} {
			b.step("%s %q %s", step.name, step.text, layout)
			b.shell("rm -f runs")
			a.OpenDiff(b.path(step.name), step.text)
			b.is("(buffer-name)", step.name+" <proposal>")
			b.tm.Wait("change 1/1", patience)
			if _, err := os.Stat(runs); (err == nil) != step.runs {
				t.Errorf("%s %q, %s: a program looks for differences: %v", step.name, step.text, layout, err == nil)
			}
			b.keys("C-c", "C-k")
			a.Outcome()
			b.is("(buffer-name)", "a.go")
		}
	}
}

// A diff whose windows the user has covered is still there, and comes back
// when asked for; deciding it leaves what the user made since.
func emacsHidden(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n", "b": "b\n"}, "a.go")
	b.offer(a, "a.go", "new\n")
	b.keys("C-x", "1", "C-x", "C-f")
	b.text("b\r")
	b.is("(list (length (window-list)) (buffer-name))", "(1 b)")
	b.sees(a, "b 1:1")
	b.mx("pollux-review")
	b.is(windows, "(3 a.go <proposal>)")
	b.text("x")
	b.keys("C-x", "b")
	b.text("b\r")
	b.keys("C-x", "1")
	b.is("(list (length (window-list)) (buffer-name))", "(1 b)")
	b.mx("pollux-accept")
	b.accepted(a, "a.go", "xnew\n")
	b.is("(list (length (window-list)) (buffer-name))", "(1 b)")
	b.is(buffers, "0")
}

// Who decides in the control panel is in that of the next diff, where the same
// key decides again; who decides in the proposal is in the next proposal.
func emacsPanel(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"}, "a")
	const panel = `(list (if (string-match-p "Ediff Control" (buffer-name)) 1 0) (let ((d (seq-find #'pollux--visible-p pollux--diffs))) (if d (file-name-nondirectory (pollux--diff-path d)) "none")))`
	for _, name := range []string{"a", "b", "c", "d"} {
		a.OpenDiff(b.path(name), "new "+name+"\n")
	}
	b.is(panel, "(0 a)")
	b.keys("C-x", "o")
	b.is(panel, "(1 a)")
	for _, name := range []string{"a", "b"} {
		b.is(panel, "(1 "+name+")")
		b.text("q")
		b.rejected(a, name)
	}
	b.is(panel, "(1 c)")
	b.keys("C-x", "o", "C-x", "o") // over the other side
	b.is("(buffer-name)", "c <proposal>")
	b.keys("C-c", "C-c")
	b.accepted(a, "c", "new c\n")
	b.is(panel, "(0 d)")
	b.is(windows, "(3 d <proposal>)")
	b.eval("(setq pollux-select 'panel)")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is("(length (window-list))", "1")
	a.OpenDiff(b.path("a"), "again\n")
	b.is(panel, "(1 a)")
	b.text("q")
	b.rejected(a, "a")
	b.is("(list (length (window-list)) (buffer-name))", "(1 a)")
}
