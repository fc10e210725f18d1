package editors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// emacsSuite runs tests side by side, each with an Emacs of its own.
func emacsSuite(t *testing.T, tests map[string]func(*testing.T, flavour)) {
	t.Parallel()
	f := emacs(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

// with has Emacs evaluate more once it has opened its files, as a user's init file would.
func (f flavour) with(lisp string) flavour {
	start := f.start
	f.start = func(t *testing.T, b *bench, files []string) []string {
		return append(start(t, b, files), "--eval", "(progn "+lisp+")")
	}
	return f
}

// mx types a command of Emacs's by name.
func (b *bench) mx(command string) { b.Helper(); b.keys("M-x"); b.text(command + "\r") }

// frame opens one more frame in a terminal of its own.
func (b *bench) frame(dir string, args ...string) *terminal.Terminal {
	b.Helper()
	args = append([]string{"emacsclient", "--socket-name", b.root + "/r/s", "-t"}, args...)
	return terminal.Start(b, terminal.Options{Dir: dir, Env: b.env, Args: args})
}

func TestEmacsWindows(t *testing.T) {
	emacsSuite(t, map[string]func(*testing.T, flavour){
		"frames": emacsFrames, "daemon": emacsDaemon, "layout": emacsLayout, "side window": emacsSideWindow, "tab bar": emacsTabBar, "terminal": emacsTerminalFollows,
		"now": emacsNow, "never": emacsNever, "ediff": emacsEdiff, "hidden": emacsHidden,
		"panel": emacsPanel, "first change": emacsFirstChange,
	})
}

// Each frame is its own user's view: the one that has keys is told, a diff
// opens there and leaves the others alone, and outlives its frame.
func emacsFrames(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\nsecond\n", "b": "b\nsecond\n"})
	b.open("a")
	a := b.connect()
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
	a.OpenDiff(b.path("a"), "new a\n")
	b.is(windows, "(3 a <proposal>)")
	b.is(shape, "(2 3)")
	second.Type("edited ")
	b.is(`(with-current-buffer "a <proposal>" (buffer-string))`, "edited new a\n")
	second.Keys("C-x", "5", "0") // the frame goes, the diff comes to the other one
	b.is(`(list (length (window-list)) (buffer-name) (buffer-string))`, "(3 a <proposal> edited new a\n)")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != "edited new a\n" {
		t.Errorf("%+v", o)
	}
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
	if o := a.Outcome(); o.Content != "new\n" {
		t.Errorf("%+v", o)
	}
	one = b.frame(b.project, "a")
	b.sees(a, "a 1:1")
	one.Keys("C-f")
	b.sees(a, "a 1:2")
	a.OpenDiff(b.path("a"), "newer\n")
	b.is(windows, "(3 a <proposal>)")
	one.Keys("C-c", "C-k")
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
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

// The user's windows, points, marks, folds and registers come back exactly,
// however the diff ends; folds and marks outlive the CLI's write too.
func emacsLayout(t *testing.T, f flavour) {
	org := "* one\ntext\n* two\nmore\nlines\n* three\nend\n"
	b := newBench(t, f.with(layoutLisp), map[string]string{"a.org": org, "b.el": strings.Repeat("(defun f ()\n  1)\n", 60)})
	b.open("a.org", "b.el")
	a := b.connect()
	b.eval(`(progn (delete-other-windows) (switch-to-buffer "a.org") (goto-char 7) (push-mark 3 t) (push-mark 9 t)
	  (split-window-right 50) (split-window-below 8) (other-window 1) (switch-to-buffer "b.el") (goto-char 400) (set-window-start nil 200) (push-mark 20 t)
	  (set-register ?r "text") (point-to-register ?p) (kill-new "killed")
	  (with-current-buffer "b.el" (require 'hideshow) (hs-minor-mode 1) (save-excursion (goto-char 13) (hs-hide-block)))
	  (with-current-buffer "a.org" (require 'outline) (outline-minor-mode 1) (save-excursion (goto-char 12) (outline-hide-subtree)))
	  (other-window 1) (scroll-left 1))`)
	b.pause(300)
	b.eval("(setq bench-before (bench-layout))")
	for _, keys := range [][]string{{"C-c", "C-c"}, {"C-c", "C-k"}, {"C-x", "k", "Enter"}, {"C-x", "o", "q"}} {
		a.OpenDiff(b.path("a.org"), strings.Replace(org, "end", "END", 1))
		b.is(windows, "(3 a.org <proposal>)")
		b.keys(keys...)
		a.Outcome()
		b.is("(length (window-list))", "3")
		b.is(buffers, "0")
		b.is("(if (equal bench-before (bench-layout)) \"same\" (list bench-before (bench-layout)))", "same")
	}
	a.OpenDiff(b.path("a.org"), strings.Replace(org, "end", "END", 1))
	b.is(windows, "(3 a.org <proposal>)")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is("(length (window-list))", "3")
	b.write("a.org", strings.Replace(org, "end", "END", 1))
	b.is(`(with-current-buffer "a.org" (string-match-p "END" (buffer-string)))`, itoa(strings.Index(org, "end")))
	b.is("(if (equal (nth 0 bench-before) (nth 0 (bench-layout))) \"same\" (list bench-before (bench-layout)))", "same")
	b.is("(if (equal (nth 2 bench-before) (nth 2 (bench-layout))) \"same\" (list bench-before (bench-layout)))", "same")
}

// A diff does not open in a side window, where a tree or a terminal stands, and does not take it away.
func emacsSideWindow(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	b.eval(`(progn (with-current-buffer (get-buffer-create "*side*") (insert "side"))
	  (select-window (display-buffer-in-side-window (get-buffer "*side*") '((side . left) (dedicated . t)))))`)
	b.is("(list (length (window-list)) (buffer-name))", "(2 *side*)")
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is("(list (length (window-list)) (buffer-name))", "(3 a.go <proposal>)")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is("(list (length (window-list)) (buffer-name) (window-parameter nil 'window-side))", "(2 *side* left)")
}

// A diff that is decided from another tab of the tab bar gives its own tab's windows back.
func emacsTabBar(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n", "b": "b\n"})
	b.open("a.go")
	a := b.connect()
	b.keys("C-x", "t", "2")
	b.is("(length (frame-parameter nil 'tabs))", "2")
	b.keys("C-x", "2")
	b.soon(`(switch-to-buffer (find-file-noselect "b"))`)
	const layout = "(list (mapcar (lambda (w) (list (buffer-name (window-buffer w)) (window-edges w))) (window-list)) (buffer-name))"
	b.is("(list (length (window-list)) (buffer-name))", "(2 b)")
	before := b.eval(layout)
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-x", "t", "o")
	b.is("(list (length (window-list)) (buffer-name))", "(1 a.go)")
	b.mx("pollux-reject")
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
	b.is(buffers, "0")
	b.is("(list (length (window-list)) (buffer-name))", "(1 a.go)")
	b.keys("C-x", "t", "o")
	b.is(layout, before)
}

// A terminal beside a diff goes on where its output has come to.
func emacsTerminalFollows(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	b.eval(`(progn (split-window-below) (other-window 1) (require 'term) (switch-to-buffer (make-term "sh" "/bin/sh")) (term-mode) (term-char-mode))`)
	const atEnd = `(with-current-buffer "*sh*" (= (window-point (get-buffer-window "*sh*")) (marker-position (process-mark (get-buffer-process "*sh*")))))`
	b.is(atEnd, "t")
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.eval(`(process-send-string "sh" "echo mar''ker; echo; echo\n")`)
	b.is(`(with-current-buffer "*sh*" (if (string-match-p "^marker" (buffer-string)) 1 0))`, "1")
	b.keys("C-c", "C-k")
	a.Outcome()
	b.is("(list (length (window-list)) (buffer-name))", "(2 *sh*)")
	b.is(atEnd, "t")
	b.text("echo al''ive\r")
	b.is(`(with-current-buffer "*sh*" (if (string-match-p "^alive" (buffer-string)) 1 0))`, "1")
}

// pollux-focus: at once, also for somebody who never pauses so long.
func emacsNow(t *testing.T, f flavour) {
	b := newBench(t, f.with("(setq pollux-focus 'now pollux-idle 9999)"), map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	b.keys("C-e")
	b.sees(a, "a.go 1:2")
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
}

// pollux-focus: never, until the user asks for it.
func emacsNever(t *testing.T, f flavour) {
	b := newBench(t, f.with("(setq pollux-focus 'never)"), map[string]string{"a.go": "a\n", "b": "b\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "new\n")
	b.says("a.go")
	b.says("waits: M-x pollux-review shows it")
	b.pause(1500)
	b.is(windows, "(1 a.go)")
	b.mx("pollux-review")
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != "new\n" {
		t.Errorf("%+v", o)
	}
}

// Ediff's own commands decide single changes; the user's own sessions of
// Ediff have Ediff's own keys.
func emacsEdiff(t *testing.T, f flavour) {
	old := "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
	b := newBench(t, f, map[string]string{"a.go": old, "b.go": "b\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), strings.NewReplacer("one", "ONE", "nine", "NINE").Replace(old))
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-x", "o")
	b.is(`(if (string-match-p "Ediff" (buffer-name)) 1 0)`, "1")
	b.text("a") // the first change, as it was
	b.is(`(with-current-buffer "a.go <proposal>" (string-match-p "one" (buffer-string)))`, "0")
	b.text("n")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != strings.Replace(old, "nine", "NINE", 1) {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(1 a.go)")
	b.eval(`(run-at-time 0 nil (lambda () (let ((ediff-window-setup-function 'ediff-setup-windows-plain)) (ediff-files "a.go" "b.go"))))`)
	b.is(`(if (string-match-p "Ediff" (buffer-name)) (symbol-name (key-binding "q")) (buffer-name))`, "ediff-quit")
	a.OpenDiff(b.path("b.go"), "new b\n") // while that is on show
	b.is("(buffer-name)", "b.go <proposal>")
	b.keys("C-c", "C-k")
	a.Outcome()
	b.is(`(if (string-match-p "Ediff" (buffer-name)) (symbol-name (key-binding "q")) (buffer-name))`, "ediff-quit")
}

// A diff whose windows the user has covered is still there, and comes back
// when asked for; deciding it leaves what the user made since.
func emacsHidden(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n", "b": "b\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
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
	if o := a.Outcome(); o.Content != "xnew\n" {
		t.Errorf("%+v", o)
	}
	b.is("(list (length (window-list)) (buffer-name))", "(1 b)")
	b.is(buffers, "0")
}

// Who decides in the control panel is in that of the next diff, where the same
// key decides again; who decides in the proposal is in the next proposal.
func emacsPanel(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"})
	b.open("a")
	a := b.connect()
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
		if o := a.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != b.path(name) {
			t.Errorf("%+v", o)
		}
	}
	b.is(panel, "(1 c)")
	b.keys("C-x", "o", "C-x", "o") // over the other side
	b.is("(buffer-name)", "c <proposal>")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != "new c\n" {
		t.Errorf("%+v", o)
	}
	b.is(panel, "(0 d)")
	b.is(windows, "(3 d <proposal>)")
	b.eval("(setq pollux-select 'panel)")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is("(length (window-list))", "1")
	a.OpenDiff(b.path("a"), "again\n")
	b.is(panel, "(1 a)")
	b.text("q")
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
	b.is("(list (length (window-list)) (buffer-name))", "(1 a)")
}

// A diff of a long file comes up with its first change in sight, and point on it.
func emacsFirstChange(t *testing.T, f flavour) {
	old := strings.Repeat("line\n", 400)
	b := newBench(t, f, map[string]string{"a.go": old + "old\n" + old})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), old+"new\n"+old)
	b.is("(list (buffer-name) (line-number-at-pos))", "(a.go <proposal> 401)")
	for _, side := range []string{"before", "proposal"} {
		b.is(`(let ((w (get-buffer-window "a.go <`+side+`>"))) (with-current-buffer (window-buffer w) (if (pos-visible-in-window-p (save-excursion (goto-char (point-min)) (forward-line 400) (point)) w) 1 0)))`, "1")
	}
	b.text("the ")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != old+"the new\n"+old {
		t.Errorf("%q", strings.ReplaceAll(o.Content, "line\n", ""))
	}
}
