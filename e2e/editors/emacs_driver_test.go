package editors

import "strings"

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
func (e emacsUser) visit(file string) {
	e.b.Helper()
	e.b.keys("C-x", "C-f")
	e.b.text(file + "\r")
}
func (e emacsUser) save() { e.b.Helper(); e.b.keys("C-x", "C-s") }
func (e emacsUser) undo() { e.b.Helper(); e.b.keys("C-_") }
func (e emacsUser) redo() { e.b.Helper(); e.b.mx("undo-redo") }
func (e emacsUser) mark() {
	e.b.Helper()
	e.b.eval("(progn (defvar bench-mark) (setq bench-mark (point-marker)))")
}
func (e emacsUser) command(name string) { e.b.Helper(); e.b.mx(strings.Replace(name, ".", "-", 1)) }
func (e emacsUser) accept()             { e.b.Helper(); e.b.keys("C-c", "C-c") }
func (e emacsUser) reject()             { e.b.Helper(); e.b.keys("C-c", "C-k") }
func (e emacsUser) keep()               { e.b.Helper(); e.b.keys("C-c", "C-o") }
func (e emacsUser) take()               { e.b.Helper(); e.b.keys("C-c", "C-t") }

func (e emacsUser) arrange() {
	e.b.Helper()
	e.b.eval(`(progn (goto-char (point-min)) (forward-line 69) (defvar bench-fold (point-marker)) (forward-line 5)
	  (overlay-put (make-overlay bench-fold (line-end-position)) 'invisible t)
	  (defvar bench-mark (point-marker)) (forward-line -15) (forward-char 3) (recenter 0))`)
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
func (e emacsUser) hints() []string      { return []string{"C-c C-t take", "! NINE"} }
