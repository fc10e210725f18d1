package editors

import (
	"os"
	"strings"
	"testing"
)

func TestEmacsDiffs(t *testing.T) {
	emacsSuite(t, map[string]func(*testing.T, flavour){
		"pattern": emacsPattern, "file": emacsFilePolicy, "announced": emacsAnnounced, "locale C": emacsLocaleC, "latin-1": emacsLatin1,
		"big": emacsBig, "long line": emacsLongLine, "autosave": emacsAutosave, "reload": emacsReload, "half written": emacsHalfWritten, "copy": emacsCopy, "gone": emacsGone,
	})
}

// F-11, for a pattern; what is accepted without a diff is reloaded all the same.
func emacsPattern(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n", "b.txt": "b\n"})
	b.open("a.go")
	a := b.connect()
	b.mx("pollux-set-policy")
	b.text("accept\rpattern\r")
	b.is(`(if (active-minibuffer-window) (with-current-buffer (window-buffer (active-minibuffer-window)) (minibuffer-contents-no-properties)) "")`, b.project+"/**")
	b.keys("C-a", "C-k")
	b.text(b.project + "/*.go\r")
	b.says("accept: " + b.project + "/*.go")
	a.OpenDiff(b.path("a.go"), "new a\n")
	if o := a.Outcome(); o.Content != "new a\n" {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(1 a.go)")
	b.write("a.go", "new a\n")
	b.is(`(with-current-buffer "a.go" (buffer-string))`, "new a\n")
	a.OpenDiff(b.path("b.txt"), "new b\n") // does not fit
	b.is(windows, "(3 b.txt <proposal>)")
	b.keys("C-c", "C-k")
	a.Outcome()
	b.mx("pollux-set-policy")
	b.text("ask\rpattern\r")
	b.keys("C-a", "C-k")
	b.text(b.project + "/*.go\r")
	b.says("ask: " + b.project + "/*.go")
	a.OpenDiff(b.path("a.go"), "newer a\n")
	b.is(windows, "(3 a.go <proposal>)")
}

// F-8: what the CLI has written only in part when Emacs reads it is shown whole in the end.
func emacsHalfWritten(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "first\nsecond\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.is(`(progn (defun rest (&rest _) (advice-remove 'insert-file-contents #'rest) (write-region "second\n" nil "`+b.path("a.go")+`" t 'quiet)) (advice-add 'insert-file-contents :after #'rest) 1)`, "1")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.write("a.go", "first\n") // the rest comes when Emacs has just read it
	b.is(`(with-current-buffer "a.go" (buffer-string))`, "first\nsecond\n")
}

// F-11, for one file, with a prefix argument; and the CLI's own terminal for everything.
func emacsFilePolicy(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n", "b": "b\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "one\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.text("edited ")
	b.is(shown, "edited one")
	b.keys("C-u")
	b.mx("pollux-accept-all")
	if o := a.Outcome(); o.Content != "edited one\n" {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(1 a.go)")
	a.OpenDiff(b.path("a.go"), "two\n")
	if o := a.Outcome(); o.Content != "two\n" {
		t.Errorf("%+v", o)
	}
	a.OpenDiff(b.path("b"), "new b\n")
	b.is(windows, "(3 b <proposal>)")
	b.keys("C-c", "C-k")
	a.Outcome()
}

// F-8: unsaved changes are announced where the decision is made, as long as there are any. F-13: once they are saved the proposal
// is shown with them in it, and accepting it does not undo them.
func emacsAnnounced(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\nb\nc\nd\ne\n"})
	b.open("a.go")
	a := b.connect()
	b.text("mine ")
	b.is("(buffer-modified-p)", "t")
	a.OpenDiff(b.path("a.go"), "a\nb\nc\nd\nE\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.says("your unsaved changes of it are kept, and not in this diff")
	const announced = `(if (string-match-p "unsaved changes" (format-mode-line header-line-format)) 1 0)`
	b.is(announced, "1")
	b.eval(`(with-current-buffer "a.go" (let ((inhibit-message t)) (save-buffer)))`)
	b.is(`(if (string-match-p "mine a.*\nb\nc\nd\nE" (buffer-string)) 1 0)`, "1")
	b.is(announced, "0")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != "mine a\nb\nc\nd\nE\n" {
		t.Errorf("%+v", o)
	}
}

// F-6, whatever the locale is: Emacs's own characters are Unicode.
func emacsLocaleC(t *testing.T, f flavour) {
	f.env = append(f.env, "LANG=C", "LC_ALL=C")
	b := newBench(t, f, map[string]string{"ü.txt": "old ü\n"})
	b.open()
	a := b.connect()
	for _, text := range []string{"héllo 😀 日本 e\u0301\r\n", "\ufeff\u2028\U0010ffff\n"} {
		a.OpenDiff(b.path("ü.txt"), text)
		b.is("(length (window-list))", "3")
		b.text("x")
		b.keys("BSpace")
		b.keys("C-c", "C-c")
		if o := a.Outcome(); o.Content != text {
			t.Errorf("%q became %q", text, o.Content)
		}
		b.is("(length (window-list))", "1")
	}
}

// A user who prefers another coding system, with a file open in it.
func emacsLatin1(t *testing.T, f flavour) {
	b := newBench(t, f.with("(prefer-coding-system 'latin-1) (setq-default buffer-file-coding-system 'latin-1)"), map[string]string{"a.go": "old\n"})
	b.open("a.go")
	a := b.connect()
	const text = "héllo 😀\n"
	a.OpenDiff(b.path("a.go"), text)
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != text {
		t.Errorf("%q", o.Content)
	}
	b.is(windows, "(1 a.go)")
	b.eval("(prefer-coding-system 'utf-8)")
	b.write("a.go", text)
	b.is(`(with-current-buffer "a.go" (list (buffer-string) (coding-system-base buffer-file-coding-system)))`, "("+text+" utf-8)")
}

// Five megabytes, edited.
func emacsBig(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	text := strings.Repeat("0123456789 abcdefghijklmnopqrstuvwxyz 😀\n", 120_000)
	a.OpenDiff(b.path("a.go"), text)
	b.is(windows, "(3 a.go <proposal>)")
	b.text("x")
	b.is(`(with-current-buffer "a.go <proposal>" (char-to-string (char-after 1)))`, "x")
	b.keys("C-c", "C-c")
	if o := a.Outcome(); o.Content != "x"+text {
		t.Errorf("%d bytes became %d", len(text)+1, len(o.Content))
	}
	b.is(windows, "(1 a.go)")
}

// A line that Emacs would be slow with goes to the page.
func emacsLongLine(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.browse()
	b.open("a.go")
	a := b.connect()
	text := strings.Repeat("x", 600_000) + "\n"
	a.OpenDiff(b.path("a.go"), text)
	b.acceptOn(b.page())
	if o := a.Outcome(); o.Content != text {
		t.Errorf("%d bytes", len(o.Content))
	}
}

// Saving by itself never accepts, however it is done; saving by hand does.
func emacsAutosave(t *testing.T, f flavour) {
	b := newBench(t, f.with(`(setq auto-save-visited-interval 1) (auto-save-visited-mode 1) (global-auto-revert-mode 1)
	  (add-hook 'before-save-hook (lambda () (save-excursion (goto-char (point-max)) (insert "by a hook\n"))))
	  (run-with-idle-timer 0.3 t (lambda () (save-some-buffers t)))
	  (run-with-idle-timer 0.3 t (lambda () (when (string-match-p "proposal" (buffer-name)) (save-buffer))))`), map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.text("edited ")
	b.is(shown, "edited new")
	b.pause(2500)
	a.Quiet()
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-x", "C-s")
	if o := a.Outcome(); !strings.HasPrefix(o.Content, "edited new\n") {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(1 a.go)")
	b.write("a.go", "what the CLI wrote\n")
	b.is(`(with-current-buffer "a.go" (list (buffer-string) (buffer-modified-p)))`, "(what the CLI wrote\n nil)")
}

// The reload keeps point, marks, the rest of the buffer and the undo history.
func emacsReload(t *testing.T, f flavour) {
	var old strings.Builder
	for i := range 200 {
		old.WriteString("line " + itoa(i) + "\n")
	}
	b := newBench(t, f, map[string]string{"a.go": old.String()})
	b.open("a.go")
	a := b.connect()
	b.keys("M-g", "g")
	b.text("101\r")
	b.sees(a, "a.go 101:1")
	b.eval(`(progn (defvar bench-mark) (setq bench-mark (copy-marker (save-excursion (search-forward "line 120") (point)))))`)
	text := strings.Replace(strings.Replace(old.String(), "line 3\n", "LINE THREE\n", 1), "line 197\n", "CHANGED\n", 1)
	a.OpenDiff(b.path("a.go"), text)
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is(windows, "(1 a.go)")
	b.write("a.go", text)
	b.is(`(with-current-buffer "a.go" (save-excursion (goto-char (point-min)) (if (search-forward "THREE" nil t) 1 0)))`, "1")
	b.is(`(list (line-number-at-pos) (save-excursion (goto-char bench-mark) (buffer-substring (line-beginning-position) (point))))`, "(101 line 120)")
	b.keys("C-_")
	b.is(`(with-current-buffer "a.go" (list (if (string-match-p "THREE" (buffer-string)) 1 0) (if (string-match-p "CHANGED" (buffer-string)) 1 0)))`, "(0 0)")
}

// C-x C-w in a diff writes a copy, which decides nothing; a buffer that gets a
// file's name and mode after all belongs to its diff still.
func emacsCopy(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n", "there": "mine\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "new\r\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-e")
	b.text("er ü")
	b.is(shown, "newer ü")
	for _, name := range []string{"copy", "there"} {
		b.keys("C-x", "C-w")
		b.is("(if (active-minibuffer-window) 1 0)", "1")
		b.text(name + "\r")
		if name == "there" {
			b.is("(if (active-minibuffer-window) 1 0)", "1") // whether to overwrite it
			b.text("y")
		}
		b.until(name, func() bool { data, _ := os.ReadFile(b.path(name)); return string(data) == "newer ü\r\n" })
		b.is(windows, "(3 a.go <proposal>)")
	}
	a.Quiet()
	b.mx("set-visited-file-name")
	b.text("named.el\r")
	b.is("(list (buffer-name) (and (string-match-p \"named.el\" (or buffer-file-name \"\")) t))", "(named.el t)")
	b.mx("emacs-lisp-mode")
	b.is("(list (eq major-mode 'emacs-lisp-mode) (and pollux--id t))", "(t t)")
	b.mx("pollux-accept")
	if o := a.Outcome(); o.Content != "newer ü\r\n" {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(1 a.go)")
	b.is(buffers, "0")
}

// The edits of a proposal whose CLI nobody can reach any more are kept.
func emacsGone(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "a\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "new\n")
	b.is(windows, "(3 a.go <proposal>)")
	b.keys("C-e")
	b.text("er ü")
	b.is(shown, "newer ü")
	b.forgetful()
	b.is(windows, "(1 a.go)")
	b.says("what you made of it is kept in buffer a.go <edited>")
	b.is(`(with-current-buffer "a.go <edited>" (buffer-string))`, "newer ü\n")
}
