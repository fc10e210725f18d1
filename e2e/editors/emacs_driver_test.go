package editors

import (
	"fmt"
	"strings"
)

// emacsUser is the user of Emacs.
type emacsUser struct{ b *bench }

func (e emacsUser) begin(line int) {
	e.b.Helper()
	e.b.keys("M-g", "g")
	e.b.text(itoa(line) + "\r")
	e.b.keys("C-e")
	e.b.is("(list (line-number-at-pos) (eolp))", "("+itoa(line)+" t)")
}
func (e emacsUser) done()            {}
func (e emacsUser) adds(text string) { e.b.Helper(); e.b.keys("M->"); e.b.text(text + "\r") }
func (e emacsUser) jots(line int, text string) {
	e.b.Helper()
	e.b.keys("M-g", "g")
	e.b.text(itoa(line) + "\r")
	e.b.keys("C-e")
	e.b.text("\r" + text)
}
func (e emacsUser) visit(file string) {
	e.b.Helper()
	e.b.keys("C-x", "C-f")
	e.b.text(file + "\r")
}
func (e emacsUser) save()              { e.b.Helper(); e.b.keys("C-x", "C-s") }
func (e emacsUser) saveAs(file string) { e.b.Helper(); e.b.keys("C-x", "C-w"); e.b.text(file + "\r") }
func (e emacsUser) close()             { e.b.Helper(); e.b.keys("C-x", "k", "Enter") }
func (e emacsUser) undo()              { e.b.Helper(); e.b.keys("C-_") }
func (e emacsUser) redo()              { e.b.Helper(); e.b.mx("undo-redo") }
func (e emacsUser) mark() {
	e.b.Helper()
	e.b.eval("(progn (defvar bench-mark) (setq bench-mark (point-marker)))")
}
func (e emacsUser) command(name string) { e.b.Helper(); e.b.mx(strings.Replace(name, ".", "-", 1)) }
func (e emacsUser) accept()             { e.b.Helper(); e.b.keys("C-c", "C-c") }
func (e emacsUser) reject()             { e.b.Helper(); e.b.keys("C-c", "C-k") }
func (e emacsUser) undoPast(string) {
	e.b.Helper()
	e.b.mx("pollux-undo")
	e.b.is(asking, "1")
	e.b.keys("Enter")
}
func (e emacsUser) keep() { e.b.Helper(); e.b.keys("C-c", "C-o") }
func (e emacsUser) take() { e.b.Helper(); e.b.keys("C-c", "C-t") }

func (e emacsUser) arrange() {
	e.b.Helper()
	e.b.eval(`(progn (goto-char (point-min)) (forward-line 69) (defvar bench-fold (point-marker)) (forward-line 5)
	  (overlay-put (make-overlay bench-fold (line-end-position)) 'invisible t)
	  (defvar bench-mark (point-marker)) (forward-line -15) (forward-char 3) (recenter 0))`)
}

func (e emacsUser) acceptAllOfFile() { e.b.Helper(); e.b.keys("C-u"); e.b.mx("pollux-accept-all") }
func (e emacsUser) noFiles() []way {
	all := e.pressed("C-x d Enter")
	for _, lisp := range []string{
		`(dired ".")`, `(switch-to-buffer "*Messages*")`, `(shell)`, `(switch-to-buffer "unnamed")`, `(find-file ".git/COMMIT_EDITMSG")`,
		`(find-file "not there yet")`, `(switch-to-buffer (list-buffers-noselect))`, `(ansi-term "/bin/sh")`,
		`(progn (describe-variable 'tab-width) (switch-to-buffer "*Help*"))`,
	} {
		all = append(all, way{lisp, func() { e.b.soon(lisp) }})
	}
	return all
}

func (e emacsUser) back(file string) {
	e.b.Helper()
	e.b.soon(`(delete-other-windows) (switch-to-buffer "` + file + `")`)
}

func (e emacsUser) run(prompt string) {
	e.b.Helper()
	e.b.eval(fmt.Sprintf("(setq pollux-cli-arguments '(\"-i\" %q))", prompt))
	e.b.mx("pollux-run")
}

func (e emacsUser) seekCLI()        { e.b.Helper(); e.b.mx("pollux-run"); e.b.is(windows, "(3 *gemini: p*)") }
func (e emacsUser) refuses() string { return "3" } // Escape alone begins a key of Emacs's

func (e emacsUser) leaving() []leave {
	return []leave{
		{way{"C-x C-c, saving", func() { e.b.keys("C-x", "C-c"); e.b.tm.Wait("Save file", patience); e.b.text("y") }}, "bmine\n"},
		{way{"C-x C-c, saving nothing", func() {
			e.b.keys("C-x", "C-c")
			e.b.tm.Wait("Save file", patience)
			e.b.text("n")
			e.b.tm.Wait("exit anyway", patience)
			e.b.text("yes\r")
		}}, "b\n"},
	}
}

func (e emacsUser) abandons() {
	e.b.Helper()
	pid := e.b.tm.PID()
	e.b.keys("C-x", "C-c")
	for last := ""; alive(pid); {
		last = e.b.tm.Until("the next question", patience, func(screen string) bool { return screen != last || !alive(pid) })
		if strings.Contains(last, "Save file") {
			e.b.text("n")
		} else if strings.Contains(last, "exit anyway") {
			e.b.text("yes\r")
		}
	}
}

func (e emacsUser) policy(decision, pattern string) {
	e.b.Helper()
	e.b.mx("pollux-set-policy")
	e.b.text(decision + "\rpattern\r")
	e.b.is(`(if (active-minibuffer-window) (with-current-buffer (window-buffer (active-minibuffer-window)) (minibuffer-contents-no-properties)) "")`, e.b.project+"/**")
	e.b.keys("C-a", "C-k")
	e.b.text(pattern + "\r")
	e.b.says(decision + ": " + pattern)
}

func (e emacsUser) saveCopy(file string, there bool) {
	e.b.Helper()
	e.b.keys("C-x", "C-w")
	e.b.is(asking, "1")
	e.b.text(file + "\r")
	if there {
		e.b.is(asking, "1") // whether to overwrite it
		e.b.text("y")
	}
}

func (e emacsUser) undone(text string) { e.b.Helper(); e.b.text(text); e.b.keys("BSpace") }
func (e emacsUser) selectAll()         { e.b.Helper(); e.b.keys("C-x", "h") }
func (e emacsUser) unselect()          { e.b.Helper(); e.b.quit() }
func (e emacsUser) focus(when string) {
	e.b.Helper()
	idle := map[string]string{"now": "9999", "never": "0.1"}[when] // now: also for somebody who never pauses so long
	e.b.is("(progn (setq pollux-focus '"+when+" pollux-idle "+idle+") pollux-focus)", when)
}

func (e emacsUser) savesItself() {
	e.b.Helper()
	e.b.is(`(progn (setq auto-save-visited-interval 1) (auto-save-visited-mode 1) (global-auto-revert-mode 1)
	  (add-hook 'before-save-hook (lambda () (save-excursion (goto-char (point-max)) (insert "by a hook\n"))))
	  (run-with-idle-timer 0.3 t (lambda () (save-some-buffers t)))
	  (run-with-idle-timer 0.3 t (lambda () (when (string-match-p "proposal" (buffer-name)) (save-buffer)))) "set")`, "set")
}

// asking is "1" while Emacs waits for an answer.
const asking = "(if (active-minibuffer-window) 1 0)"

func (e emacsUser) busy() (all []interruption) {
	for _, amid := range []struct{ begin, taken, end string }{
		{"M-x", "(active-minibuffer-window)", "C-g"},
		{"C-x", "(equal (this-command-keys-vector) [24])", "="},
		{"C-u", "(equal prefix-arg '(4))", "C-l"},
		{"C-s a", "(buffer-local-value 'isearch-mode (window-buffer))", "Enter"},
		{"F3", "defining-kbd-macro", "F4"},
		{"M-% a Enter b Enter", "(eq this-command 'query-replace)", "q"},
	} {
		end := func() { e.b.keys(amid.end) } // not C-g, which may end the question of b.is instead
		if amid.end == "C-g" {
			end = e.b.quit
		}
		begin := func() { e.b.keys("M-<"); e.b.keys(strings.Fields(amid.begin)...) }
		all = append(all, interruption{amid.begin, begin, "(if " + amid.taken + " 1 0)", nil, end})
	}
	return all
}

func (e emacsUser) scenes() []scene {
	return []scene{{func(f flavour) flavour { return f.with(layoutLisp) }, []string{"a.org", "b.el"}, func(b *bench) {
		b.is(`(progn (delete-other-windows) (switch-to-buffer "a.org") (goto-char 7) (push-mark 3 t) (push-mark 9 t)
	  (split-window-right 50) (split-window-below 8) (other-window 1) (switch-to-buffer "b.el") (goto-char 400) (set-window-start nil 200) (push-mark 20 t)
	  (set-register ?r "text") (point-to-register ?p) (kill-new "killed")
	  (with-current-buffer "b.el" (require 'hideshow) (hs-minor-mode 1) (save-excursion (goto-char 13) (hs-hide-block)))
	  (with-current-buffer "a.org" (require 'outline) (outline-minor-mode 1) (save-excursion (goto-char 12) (outline-hide-subtree)))
	  (other-window 1) (scroll-left 1) "arranged")`, "arranged")
	}, "(list (bench-layout) " + buffers + ")"}}
}

// pressed are ways by keys.
func (e emacsUser) pressed(all ...string) (ways []way) {
	for _, keys := range all {
		ways = append(ways, way{keys, func() { e.b.Helper(); e.b.keys(strings.Fields(keys)...) }})
	}
	return ways
}

func (e emacsUser) accepting() []way {
	return e.pressed("C-c C-c", "C-x C-s", "M-x pollux-accept Enter")
}

func (e emacsUser) rejecting() []way {
	panel := way{"q in Ediff's panel", func() {
		e.b.Helper()
		e.b.keys("C-x", "o")
		e.b.is(`(if (string-match-p "Ediff" (buffer-name)) 1 0)`, "1")
		e.b.keys("q")
	}}
	return append(e.pressed("C-c C-k", "C-x k Enter", "M-x pollux-reject Enter"), panel)
}

func (e emacsUser) place() string {
	return `(cond ((and (= (length (window-list)) 3) (string-match-p " <proposal>\\'" (buffer-name))) (buffer-name))
	  ((and (= (length (window-list)) 1) (= ` + buffers + ` 0)) (buffer-name))
	  (t (list "elsewhere" (length (window-list)) (buffer-name) ` + buffers + `)))`
}

func (e emacsUser) cursor() string {
	return `(format "%d %s" (line-number-at-pos) (buffer-substring-no-properties (line-beginning-position) (point)))`
}
func (e emacsUser) marked() string { return "(line-number-at-pos bench-mark)" }
func (e emacsUser) arranged() string {
	return `(format "%d %d %d %d %d" (line-number-at-pos) (current-column) (line-number-at-pos (window-start)) (line-number-at-pos bench-mark)
	  (line-number-at-pos (apply 'min (mapcar 'overlay-start (seq-filter (lambda (o) (overlay-get o 'invisible)) (overlays-in (point-min) (point-max)))))))`
}
func (e emacsUser) process() string             { return "(emacs-pid)" }
func (e emacsUser) variable(name string) string { return `(or (getenv "` + name + `") "")` }
func (e emacsUser) output(command string) string {
	return `(string-trim (shell-command-to-string "` + command + `"))`
}
func (e emacsUser) under() string { return "(char-to-string (char-after))" }
func (e emacsUser) inCLI() string {
	return `(if (and (= (length (window-list)) 2) (equal (buffer-name) "*gemini: p*")) 1 0)`
}
func (e emacsUser) alone() string {
	return "(if (= (length (window-list nil 'no-minibuffer)) 1) 1 0)"
}
func (e emacsUser) kept(file string) string { return e.in(`(get-buffer "` + file + ` <edited>")`) }
func (e emacsUser) language() string {
	return `(string-remove-suffix "-mode" (symbol-name major-mode))`
}
func (e emacsUser) at() string {
	return "(line-number-at-pos (max 1 (min (point) (1- (point-max)))))" // not the line behind the last one
}
func (e emacsUser) inSight() string {
	return `(let ((line (line-number-at-pos)))
	  (if (seq-every-p (lambda (side) (let ((w (get-buffer-window (concat (car (split-string (buffer-name) " <")) side))))
	      (pos-visible-in-window-p (with-current-buffer (window-buffer w) (save-excursion (goto-char (point-min)) (forward-line (1- line)) (point))) w)))
	    '(" <before>" " <proposal>")) 1 0))`
}
func (e emacsUser) typing() string {
	return "(if (eq (key-binding \"a\") 'self-insert-command) 1 0)"
}
func (e emacsUser) buffer(file string) string {
	return e.in(`(find-buffer-visiting "` + e.b.path(file) + `")`)
}
func (e emacsUser) proposal(file string) string {
	return e.in(`(get-buffer "` + file + ` <proposal>")`)
}
func (e emacsUser) original(file string) string { return e.in(`(get-buffer "` + file + ` <before>")`) }

// in is the text of a buffer.
func (e emacsUser) in(buffer string) string {
	return `(let ((b ` + buffer + `)) (if b (with-current-buffer b (replace-regexp-in-string "\n" "|" (replace-regexp-in-string "\n\\'" "" (buffer-substring-no-properties (point-min) (point-max))))) "nothing"))`
}

func (e emacsUser) modified(file string) string {
	return `(if (buffer-modified-p (find-buffer-visiting "` + e.b.path(file) + `")) 1 0)`
}

func (e emacsUser) conflicts() string {
	return `(mapconcat (lambda (o) (number-to-string (line-number-at-pos (overlay-start o)))) (seq-filter (lambda (o) (overlay-get o 'pollux)) (overlays-in (point-min) (point-max))) " ")`
}
func (e emacsUser) merging(side string) string {
	return `(if (= (length (window-list)) 4) ` + e.in(`(get-buffer "a.txt`+map[string]string{"disk": " <disk>", "began": " <began>"}[side]+`")`) + ` "no merge")`
}
func (e emacsUser) complaints() []string { return []string{"changed since", "really edit"} }
func (e emacsUser) questions() map[string]string {
	return map[string]string{"Save anyway?": "no\r", "really edit the buffer?": "n"}
}
func (e emacsUser) everything() string {
	return `(mapconcat (lambda (b) (with-current-buffer b (if (buffer-file-name) (buffer-string) (if (string-match-p " <" (buffer-name)) (buffer-string) "")))) (buffer-list) "|")`
}
func (e emacsUser) hints(of string) []string {
	return map[string][]string{"conflict": {"C-c C-t take", "! NINE"}, "unsaved": {"your unsaved changes of this file are kept"}}[of]
}
