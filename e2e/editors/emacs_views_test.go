package editors

import (
	"os"
	"strings"
	"testing"
)

// The layout unified: the proposal alone, to be edited, with the lines that it takes away between its own.
func emacsUnified(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.txt": nine}, "a.txt")
	b.is("(setq pollux-layout 'unified)", "unified")
	const here = "(list (length (window-list)) (buffer-name))"
	const at = `(format "%d %s" (line-number-at-pos) (buffer-substring-no-properties (line-beginning-position) (line-end-position)))`
	a.OpenDiff(b.path("a.txt"), strings.NewReplacer("one", "ONE", "five\n", "", "nine\n", "nine\nten\n").Replace(nine))
	b.is(here, "(1 a.txt <proposal>)")
	for _, want := range []string{"- one", "+ ONE", "  two", "- five", "+ ten", "change 1/3"} {
		b.tm.Wait(want, patience)
	}
	b.is("(line-number-at-pos)", "1")
	for _, step := range [][2]string{{"C-n", "5 six"}, {"C-n", "9 ten"}, {"C-n", "9 ten"}, {"C-p", "5 six"}} {
		b.keys("C-c", step[0])
		b.is(at, step[1])
	}
	b.step("the user takes a change back, and edits")
	b.keys("C-c", "C-u")
	b.is(at, "5 five")
	b.types(2, " edited")
	b.tm.Wait("+ two edited", patience)
	if screen := b.tm.Wait("- two", patience); strings.Contains(screen, "- five") {
		t.Errorf("%s", screen)
	}
	b.step("the file changes")
	b.shell("sed -i s/seven/SEVEN/ a.txt")
	want := strings.NewReplacer("one", "ONE", "two", "two edited", "seven", "SEVEN", "nine\n", "nine\nten\n").Replace(nine)
	b.is(b.proposal("a.txt"), lines(want))
	b.until("its line is no change", func() bool {
		s := b.tm.Screen()
		return strings.Contains(s, "  SEVEN") && !strings.Contains(s, "+ SEVEN")
	})
	b.step("the user looks at another buffer, and comes back")
	b.keys("C-x", "b")
	b.text("a.txt\r")
	b.is(here, "(1 a.txt)")
	b.mx("pollux-review")
	b.is(here, "(1 a.txt <proposal>)")
	b.is(at, "2 two edited")
	b.accept()
	b.accepted(a, "a.txt", want)
	b.calm("a.txt")
	for what, tt := range map[string]struct{ file, text, shows string }{
		"a new file":      {"new.txt", "x\n", "+ x"},
		"the first lines": {"a.txt", strings.TrimPrefix(nine, "one\ntwo\n"), "- one"},
		"the last lines":  {"a.txt", strings.TrimSuffix(nine, "eight\nnine\n"), "- nine"},
		"no last end":     {"a.txt", strings.TrimSuffix(nine, "\neight\nnine\n"), "- nine"},
		"wide":            {"a.txt", strings.Replace(nine, "four", "vier 日本", 1), "- four"},
		"all of it":       {"a.txt", "x\n", "- nine"},
	} {
		b.step("%s", what)
		b.write("a.txt", nine)
		a.OpenDiff(b.path(tt.file), tt.text)
		b.is(here, "(1 "+tt.file+" <proposal>)")
		b.tm.Wait(tt.shows, patience)
		b.tm.Wait("change", patience)
		b.is(b.proposal(tt.file), lines(tt.text))
		b.step("%s, taken back", what)
		b.keys("C-c", "C-u")
		old := map[string]string{"a.txt": nine, "new.txt": ""}[tt.file]
		b.is(b.proposal(tt.file), lines(old))
		b.keys("C-_")
		b.reject()
		b.rejected(a, tt.file)
		b.calm("a.txt")
	}
}

// A diff on show is laid out anew when the frame gets another size, with what the user has typed and where they are.
func emacsResized(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.txt": nine}, "a.txt")
	const laid = `(let ((l (get-buffer-window "a.txt <before>")) (r (get-buffer-window "a.txt <proposal>")))
	  (format "%d %s" (frame-width) (cond ((not (and l r)) "hidden") ((= (car (window-edges l)) (car (window-edges r))) "below") ((= (cadr (window-edges l)) (cadr (window-edges r))) "beside") (t "odd"))))`
	b.offer(a, "a.txt", proposed)
	b.is(laid, "160 beside")
	b.types(5, " edited")
	want := strings.Replace(proposed, "five", "five edited", 1)
	for range 2 {
		b.step("the frame gets narrow")
		b.tm.Resize(80, 40)
		b.is(laid, "80 below")
		b.shows("a.txt", want)
		b.is(b.cursor(), "5 five edited")
		b.step("the frame gets wide while the user is asked something")
		b.keys("M-x")
		b.is(asking, "1")
		b.tm.Resize(160, 50)
		b.is("(frame-width)", "160")
		b.quit()
		b.is(laid, "160 beside")
		b.shows("a.txt", want)
		b.is(b.cursor(), "5 five edited")
	}
	b.step("Ediff's own commands go on")
	b.keys("C-x", "o")
	b.is(`(if (string-match-p "Ediff" (buffer-name)) 1 0)`, "1")
	b.text("n")
	b.keys("C-x", "o", "C-x", "o")
	b.is("(buffer-name)", "a.txt <proposal>")
	a.Quiet()
	b.accept()
	b.accepted(a, "a.txt", want)
	b.calm("a.txt")
}

// The layout terminal: the agent's terminal stays in sight beside the diff, where it was, and is the user's as before.
func emacsBesideTerminal(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine, "../bin/agent": "#!/bin/sh\necho ready\nwhile read -r line; do echo \"got $line\"; done\n"})
	if err := os.Chmod(b.path("../bin/agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.open("a.txt")
	a := b.connect()
	b.is(`(progn (setq pollux-layout 'terminal pollux-terminal 'term pollux-cli "`+b.root+`/bin/agent" pollux-cli-arguments nil) 1)`, "1")
	const windows = `(mapcar (lambda (w) (list (buffer-name (window-buffer w)) (window-edges w))) (window-list nil nil (frame-first-window)))`
	const terminal = `(let ((w (seq-find (lambda (w) (string-match-p "agent" (buffer-name (window-buffer w)))) (window-list)))) (if w (window-edges w) "none"))`
	for _, side := range []string{"right", "left", "below"} {
		b.step("the terminal is %s", side)
		b.is("(progn (delete-other-windows) (setq pollux-side '"+side+") (length (window-list)))", "1")
		b.mx("pollux-run")
		b.is("(list (length (window-list)) major-mode)", "(2 term-mode)")
		b.text(side + "\r")
		b.tm.Wait("got "+side, patience)
		b.eval(`(select-window (get-buffer-window "a.txt"))`)
		b.is(windows+"", b.eval(windows))
		before, place := b.eval(windows), b.eval(terminal)
		for _, decide := range append(b.accepting()[:2], b.rejecting()[0]) {
			b.step("the terminal is %s, and the user decides by %s", side, decide.name)
			a.OpenDiff(b.path("a.txt"), proposed)
			b.is("(list (length (window-list)) (buffer-name))", "(4 a.txt <proposal>)")
			b.is(terminal, place)
			b.tm.Wait("got "+side, patience)
			decide.do()
			a.Outcome()
			b.is(windows, before)
		}
		b.step("the user goes to the terminal, which is %s, from a proposal, and types", side)
		a.OpenDiff(b.path("a.txt"), proposed)
		b.is("(list (length (window-list)) (buffer-name))", "(4 a.txt <proposal>)")
		b.types(5, " edited")
		b.mx("pollux-run")
		b.is("major-mode", "term-mode")
		b.text("two " + side + "\r")
		b.tm.Wait("got two "+side, patience)
		b.step("the frame gets narrow with the terminal %s", side)
		b.tm.Resize(80, 40)
		b.is("(list (frame-width) (length (window-list)) major-mode)", "(80 4 term-mode)")
		b.is(`(let ((w (get-buffer-window "a.txt <proposal>"))) (if (and (>= (window-width w) 38) (> (window-height w) 5)) 1 (window-edges w)))`, "1")
		b.tm.Resize(160, 50)
		b.is("(frame-width)", "160")
		b.eval(`(select-window (get-buffer-window "a.txt <proposal>"))`)
		b.is("(buffer-name)", "a.txt <proposal>")
		b.accept()
		b.accepted(a, "a.txt", strings.Replace(proposed, "five", "five edited", 1))
		b.is("(list (length (window-list)) (buffer-name))", "(2 a.txt)")
	}
	b.step("no terminal is on the screen")
	b.is("(progn (delete-other-windows) (length (window-list)))", "1")
	b.offer(a, "a.txt", proposed)
	b.reject()
	b.rejected(a, "a.txt")
	b.calm("a.txt")
}
