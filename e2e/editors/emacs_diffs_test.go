package editors

import (
	"strings"
	"testing"
)

// F-8: what the CLI has written only in part when Emacs reads it is shown whole in the end.
func emacsHalfWritten(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n"}, "a.go")
	b.offer(a, "a.go", "first\nsecond\n")
	b.is(`(progn (defun rest (&rest _) (advice-remove 'insert-file-contents #'rest) (write-region "second\n" nil "`+b.path("a.go")+`" t 'quiet)) (advice-add 'insert-file-contents :after #'rest) 1)`, "1")
	b.keys("C-c", "C-c")
	a.Outcome()
	b.write("a.go", "first\n") // the rest comes when Emacs has just read it
	b.is(`(with-current-buffer "a.go" (buffer-string))`, "first\nsecond\n")
}

// F-8: unsaved changes are announced where the decision is made, as long as there are any. F-13: once they are saved the proposal
// is shown with them in it, and accepting it does not undo them.
func emacsAnnounced(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\nb\nc\nd\ne\n"}, "a.go")
	b.text("mine ")
	b.is("(buffer-modified-p)", "t")
	b.offer(a, "a.go", "a\nb\nc\nd\nE\n")
	b.says("your unsaved changes of it are kept, and not in this diff")
	const announced = `(if (string-match-p "unsaved changes" (format-mode-line header-line-format)) 1 0)`
	b.is(announced, "1")
	b.eval(`(with-current-buffer "a.go" (let ((inhibit-message t)) (save-buffer)))`)
	b.is(`(if (string-match-p "mine a.*\nb\nc\nd\nE" (buffer-string)) 1 0)`, "1")
	b.is(announced, "0")
	b.keys("C-c", "C-c")
	b.accepted(a, "a.go", "mine a\nb\nc\nd\nE\n")
}

// A user who prefers another coding system, with a file open in it.
func emacsLatin1(t *testing.T, f flavour) {
	b, a := user(t, f.with("(prefer-coding-system 'latin-1) (setq-default buffer-file-coding-system 'latin-1)"), map[string]string{"a.go": "old\n"}, "a.go")
	const text = "héllo 😀\n"
	b.offer(a, "a.go", text)
	b.keys("C-c", "C-c")
	b.accepted(a, "a.go", text)
	b.is(windows, "(1 a.go)")
	b.eval("(prefer-coding-system 'utf-8)")
	b.write("a.go", text)
	b.is(`(with-current-buffer "a.go" (list (buffer-string) (coding-system-base buffer-file-coding-system)))`, "("+text+" utf-8)")
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
	b.accepted(a, "a.go", text)
}

// The reload keeps point, marks, the rest of the buffer and the undo history.
func emacsReload(t *testing.T, f flavour) {
	var old strings.Builder
	for i := range 200 {
		old.WriteString("line " + itoa(i) + "\n")
	}
	b, a := user(t, f, map[string]string{"a.go": old.String()}, "a.go")
	b.keys("M-g", "g")
	b.text("101\r")
	b.sees(a, "a.go 101:1")
	b.eval(`(progn (defvar bench-mark) (setq bench-mark (copy-marker (save-excursion (search-forward "line 120") (point)))))`)
	text := strings.Replace(strings.Replace(old.String(), "line 3\n", "LINE THREE\n", 1), "line 197\n", "CHANGED\n", 1)
	b.offer(a, "a.go", text)
	b.keys("C-c", "C-c")
	a.Outcome()
	b.is(windows, "(1 a.go)")
	b.write("a.go", text)
	b.is(`(with-current-buffer "a.go" (save-excursion (goto-char (point-min)) (if (search-forward "THREE" nil t) 1 0)))`, "1")
	b.is(`(list (line-number-at-pos) (save-excursion (goto-char bench-mark) (buffer-substring (line-beginning-position) (point))))`, "(101 line 120)")
	b.keys("C-_")
	b.is(`(with-current-buffer "a.go" (list (if (string-match-p "THREE" (buffer-string)) 1 0) (if (string-match-p "CHANGED" (buffer-string)) 1 0)))`, "(0 0)")
}

// A buffer that gets a file's name and mode after all belongs to its diff still.
func emacsNamed(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n"}, "a.go")
	a.OpenDiff(b.path("a.go"), "new\r\n")
	b.shows("a.go", "new\n")
	b.types(1, "er ü")
	b.mx("set-visited-file-name")
	b.text("named.el\r")
	b.is("(list (buffer-name) (and (string-match-p \"named.el\" (or buffer-file-name \"\")) t))", "(named.el t)")
	b.mx("emacs-lisp-mode")
	b.is("(list (eq major-mode 'emacs-lisp-mode) (and pollux--id t))", "(t t)")
	b.mx("pollux-accept")
	b.accepted(a, "a.go", "newer ü\r\n")
	b.calm("a.go")
}
