//go:build unix

package editors

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// nine are lines with room between the first and the last.
const nine = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"

// proposed is what agents make of nine in these tests.
var proposed = strings.Replace(nine, "nine", "NINE", 1)

// TestVimFollows: a proposal follows its file in Neovim and Vim (SPEC F-13, F-10).
func TestVimFollows(t *testing.T) {
	t.Parallel()
	for _, f := range []flavour{neovim(t), vim(t)} {
		for name, test := range map[string]func(*testing.T, flavour){
			"base": vimBase, "too late": vimTooLate, "other agent": vimOtherAgent, "conflict": vimConflict, "gone": vimFileGone, "restart": vimRestart, "typing": vimTyping, "shape": vimShape,
		} {
			t.Run(f.display+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, f)
			})
		}
	}
}

// shell runs a command in the project, as an agent's shell does.
func (b *bench) shell(command string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "sh", "-c", command)
	cmd.Dir = b.project
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v: %s", command, err, out)
	}
}

// unnoticed writes a text of the same length so that no watcher sees it, as on some file systems. What was written before has been
// looked at by then.
func (b *bench) unnoticed(name, content string) {
	b.Helper()
	b.pause(1000)
	info, err := os.Stat(b.path(name))
	if err != nil {
		b.Fatal(err)
	}
	b.write(name, content)
	if err := os.Chtimes(b.path(name), info.ModTime(), info.ModTime()); err != nil {
		b.Fatal(err)
	}
}

// side is the text of a window of a diff: 1 is the file, 2 the proposal.
func side(window int) string { return "join(getbufline(winbufnr(" + itoa(window) + "), 1, '$'), '|')" }

// lines is a text as side shows it.
func lines(text string) string {
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "|")
}

// What the user saves in another window, and what a command changes, is merged
// into the proposal, which keeps the cursor, the folds and what was typed.
func vimBase(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	a.OpenDiff(b.path("a.txt"), proposed)
	b.is("&diff . getline('$')", "1NINE")
	b.text("5GA, edited")
	b.escape()
	b.text("ma")
	b.shell("sed -i '1i zero' a.txt")
	want := "zero\n" + strings.Replace(proposed, "five", "five, edited", 1)
	b.is(side(2), lines(want))
	b.is(side(1), lines("zero\n"+nine))
	b.is(`line('.') . line("'a") . winnr() . &diff . &modified`, "66210")
	b.says("the file has changed")
	// The same from the user's own window.
	b.text("gT")
	b.is("tabpagenr() . &diff", "10")
	b.ex("edit | 4s/three/THREE/ | w")
	b.is("getline(4) . &modified", "THREE0")
	b.text("gt")
	want = strings.Replace(want, "three", "THREE", 1)
	b.is(side(2), lines(want))
	b.is("line('.') . winnr()", "62")
	a.Quiet()
	b.ex("w")
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != want {
		t.Errorf("%+v", o)
	}
	b.is("&diff . tabpagenr('$') . expand('%')", "01a.txt")
}

// An acceptance that the change overtakes is refused, also when its window has gone with it: what is newer is shown first.
func vimTooLate(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	want := strings.NewReplacer("one", "ONE", "five", "5").Replace(proposed)
	for _, command := range []string{"w", "wq", "x"} {
		b.write("a.txt", nine)
		a.OpenDiff(b.path("a.txt"), proposed)
		b.is("&diff . getline('$')", "1NINE")
		companion := b.companion()
		b.kill(companion, syscall.SIGSTOP)
		b.write("a.txt", strings.Replace(nine, "one", "ONE", 1))
		b.text("5Gcc5")
		b.escape()
		b.ex(command)
		b.is("mode(1)", "n")
		b.kill(companion, syscall.SIGCONT)
		b.says("the file has changed since this was shown")
		b.is("&diff . "+side(2), "1"+lines(want))
		a.Quiet()
		b.ex(command)
		if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != want {
			t.Errorf("%s: %+v", command, o)
		}
		b.is("&diff . tabpagenr('$')", "01")
	}
}

// Two agents' proposals for one file know of each other: the second is shown on what the first will have made of it.
func vimOtherAgent(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	first, second := b.connect(), b.connect()
	first.OpenDiff(b.path("a.txt"), proposed)
	second.OpenDiff(b.path("a.txt"), strings.Replace(nine, "one", "ONE", 1))
	b.is("&diff . getline('$')", "1NINE")
	b.tm.Wait("1 more for this file", patience)
	b.ex("w")
	if o := first.Outcome(); o.Content != proposed {
		t.Errorf("%+v", o)
	}
	want := strings.Replace(proposed, "one", "ONE", 1)
	b.is("&diff . "+side(2), "1"+lines(want))
	b.is(side(1), lines(proposed))
	b.write("a.txt", proposed) // as the first CLI does
	b.pause(300)
	b.ex("w")
	if o := second.Outcome(); o.Content != want {
		t.Errorf("%+v", o)
	}
	b.is("&diff . tabpagenr('$')", "01")
}

// A conflict stands beside the text, never in it, and waits for a word of the user's.
func vimConflict(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	const signs = "join(map(sign_getplaced(bufnr('%'), {'group': 'pollux'})[0].signs, 'v:val.lnum'))"
	for how, want := range map[string]string{"keep": proposed, "take": strings.Replace(nine, "nine", "neuf", 1)} {
		b.write("a.txt", nine)
		a.OpenDiff(b.path("a.txt"), proposed)
		b.is("&diff . getline('$')", "1NINE")
		b.shell("sed -i s/nine/neuf/ a.txt")
		b.tm.Wait("conflict: :Pollux keep or take", patience)
		b.says("the file has changed on disk where the proposal changes it")
		b.is(side(2), lines(proposed))
		b.is(side(1), lines(strings.Replace(nine, "nine", "neuf", 1)))
		b.is(signs, "9")
		b.ex("w")
		b.says("keep the proposal or take the file's text first")
		b.is("&diff . "+side(2), "1"+lines(proposed))
		a.Quiet()
		b.ex("Pollux " + how)
		b.is("&diff . "+side(2), "1"+lines(want))
		b.is(signs, "")
		a.Quiet() // that was no acceptance
		b.ex("Pollux " + how)
		b.says("nothing is in conflict here")
		if how == "take" { // nothing is left to accept, so the user adds something
			b.text("Goten")
			b.escape()
			want += "ten\n"
		}
		b.ex("w")
		if o := a.Outcome(); o.Content != want {
			t.Errorf("%s: %+v", how, o)
		}
		b.is("&diff . tabpagenr('$')", "01")
	}
}

// A file that is gone conflicts as a whole.
func vimFileGone(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open()
	a := b.connect()
	a.OpenDiff(b.path("a.txt"), proposed)
	b.is("&diff . getline('$')", "1NINE")
	b.shell("rm a.txt")
	b.says("the file is gone from the disk")
	b.is(side(1), "")
	b.is(side(2), lines(proposed))
	b.ex("w")
	b.says("keep the proposal")
	a.Quiet()
	b.ex("Pollux keep")
	b.says("the proposal stands")
	b.ex("w")
	if o := a.Outcome(); o.Content != proposed {
		t.Errorf("%+v", o)
	}
	b.is("&diff . tabpagenr('$')", "01")
}

// What changes while the companion is away is shown when it is back.
func vimRestart(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	a.OpenDiff(b.path("a.txt"), proposed)
	b.is("&diff . getline('$')", "1NINE")
	b.shell("sed -i s/two/TWO/ a.txt")
	b.is("getline(2)", "TWO")
	b.text("5GA, edited")
	b.escape()
	b.until("the edit", func() bool { return b.journal("five, edited") })
	old := b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.write("a.txt", strings.NewReplacer("two", "TWO", "seven", "SEVEN").Replace(nine))
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	want := strings.NewReplacer("two", "TWO", "seven", "SEVEN", "five", "five, edited").Replace(proposed)
	b.is(side(2), lines(want))
	b.text("6GA too")
	b.escape()
	b.ex("w")
	want = strings.Replace(want, "six", "six too", 1)
	b.is("&diff . tabpagenr('$')", "01")
	b.until("the outcome", func() bool { return b.history(want) })
}

// sentence is what a user types in one go.
const sentence = ", all of it typed in one go and never once waiting for any of the changes that come in between"

// typesAtOnce types the sentence while the file changes, and waits for nothing between two keys.
func (b *bench) typesAtOnce() {
	b.Helper()
	for i, r := range sentence {
		b.text(string(r))
		if i%4 == 3 {
			b.shell("sed -i '1i line' a.txt")
		}
	}
}

// typedAtOnce is what then has become of the proposal, with the sentence behind its fifth line.
func typedAtOnce() string {
	return strings.Repeat("line\n", len(sentence)/4) + strings.Replace(proposed, "five", "five"+sentence, 1)
}

// A change that comes while the user types takes no key, and loses nothing of what was typed.
func vimTyping(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	a.OpenDiff(b.path("a.txt"), proposed)
	b.is("&diff . getline('$')", "1NINE")
	b.text("5GA")
	b.is("mode()", "i")
	b.typesAtOnce()
	want := typedAtOnce()
	b.is("mode() . "+side(2), "i"+lines(want))
	b.is("getline('.')[col('.') - 2 :]", sentence[len(sentence)-1:])
	b.escape()
	b.is("line('.')", itoa(5+len(sentence)/4))
	b.ex("w")
	if o := a.Outcome(); o.Content != want {
		t.Errorf("%+v", o)
	}
	b.is("&diff . tabpagenr('$')", "01")
}

// Line ends, a byte order mark and a missing last newline of the newest text come back as they are.
func vimShape(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": "one\r\ntwo\r\nthree\r\nfour"})
	b.open("a.txt")
	a := b.connect()
	a.OpenDiff(b.path("a.txt"), "one\r\ntwo\r\nthree\r\n4")
	b.is("&diff . &fileformat . &endofline . getline('$')", "1dos04")
	b.write("a.txt", "0\r\none\r\ntwo\r\nthree\r\nfour")
	b.is("&fileformat . &endofline . "+side(2), "dos00|one|two|three|4")
	b.text("2GA, edited")
	b.escape()
	if err := os.Remove(b.path("a.txt")); err != nil {
		t.Fatal(err)
	}
	b.write("a.txt", "\ufeff0\r\none\r\ntwo\r\nTHREE\r\nfour")
	b.until("the newest", func() bool { return strings.Contains(b.eval(side(1)), "THREE") })
	if got := a.CloseDiff(b.path("a.txt")); !strings.Contains(got, `0\r\none, edited\r\ntwo\r\n`) {
		t.Error(got)
	}
}

// TestEmacsFollows: the same in Emacs.
func TestEmacsFollows(t *testing.T) {
	emacsSuite(t, map[string]func(*testing.T, flavour){
		"base": emacsBase, "too late": emacsTooLate, "other agent": emacsOtherAgent, "conflict": emacsConflict, "gone": emacsFileGone, "restart": emacsCompanionBack, "typing": emacsTyping, "shape": emacsShape,
	})
}

// sides are the texts of a diff in Emacs: "before" and "proposal".
func emacsSide(side string) string {
	return `(let ((b (get-buffer "a.txt <` + side + `>"))) (if b (with-current-buffer b (replace-regexp-in-string "\n" "|" (string-trim-right (buffer-string)))) "nothing"))`
}

const emacsView = `(list (length (window-list)) (buffer-name) (current-column) (buffer-substring-no-properties (line-beginning-position) (line-end-position)))`

// emacsProposal opens a.txt, and the proposal for it.
func emacsProposal(t *testing.T, f flavour) (b *bench, propose func() func() string) {
	t.Helper()
	b = newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	return b, func() func() string {
		t.Helper()
		b.write("a.txt", nine)
		a.OpenDiff(b.path("a.txt"), proposed)
		b.is(windows, "(3 a.txt <proposal>)")
		return func() string { t.Helper(); return a.Outcome().Content }
	}
}

func emacsBase(t *testing.T, f flavour) {
	b, propose := emacsProposal(t, f)
	outcome := propose()
	b.keys("M-<", "C-n", "C-n", "C-n", "C-n", "C-e")
	b.text(", edited")
	b.is(emacsView, "(3 a.txt <proposal> 12 five, edited)")
	b.shell("sed -i '1i zero' a.txt")
	want := "zero\n" + strings.Replace(proposed, "five", "five, edited", 1)
	b.is(emacsSide("proposal"), lines(want))
	b.is(emacsSide("before"), lines("zero\n"+nine))
	b.is(emacsView, "(3 a.txt <proposal> 12 five, edited)")
	b.says("the file has changed")
	b.keys("C-c", "C-c")
	if got := outcome(); got != want {
		t.Errorf("accepted %q", got)
	}
	b.is(windows, "(1 a.txt)")
	b.is(buffers, "0")
}

func emacsTooLate(t *testing.T, f flavour) {
	b, propose := emacsProposal(t, f)
	want := strings.NewReplacer("one", "ONE", "five", "5").Replace(proposed)
	for _, keys := range [][]string{{"C-c", "C-c"}, {"C-x", "C-s"}} {
		outcome := propose()
		b.unnoticed("a.txt", strings.Replace(nine, "one", "ONE", 1))
		b.keys("M-<", "C-n", "C-n", "C-n", "C-n", "C-k")
		b.text("5")
		b.is(emacsView, "(3 a.txt <proposal> 1 5)")
		b.keys(keys...)
		b.says("the file has changed since this was shown")
		b.is(emacsSide("proposal"), lines(want))
		b.is("(length pollux--calls)", "0")
		b.keys(keys...)
		if got := outcome(); got != want {
			t.Errorf("%v: accepted %q", keys, got)
		}
		b.is(windows, "(1 a.txt)")
	}
}

func emacsOtherAgent(t *testing.T, f flavour) {
	b, propose := emacsProposal(t, f)
	outcome := propose()
	second := b.connect()
	second.OpenDiff(b.path("a.txt"), strings.Replace(nine, "one", "ONE", 1))
	b.tm.Wait("1 more for this file", patience)
	b.keys("C-c", "C-c")
	if got := outcome(); got != proposed {
		t.Errorf("accepted %q", got)
	}
	want := strings.Replace(proposed, "one", "ONE", 1)
	b.is(emacsSide("proposal"), lines(want))
	b.is(emacsSide("before"), lines(proposed))
	b.write("a.txt", proposed)
	b.pause(300)
	b.keys("C-c", "C-c")
	if o := second.Outcome(); o.Content != want {
		t.Errorf("%+v", o)
	}
	b.is(windows, "(1 a.txt)")
}

func emacsConflict(t *testing.T, f flavour) {
	b, propose := emacsProposal(t, f)
	const marks = `(with-current-buffer "a.txt <proposal>" (mapcar (lambda (o) (line-number-at-pos (overlay-start o))) (seq-filter (lambda (o) (overlay-get o 'pollux)) (overlays-in (point-min) (point-max)))))`
	for key, want := range map[string]string{"C-o": proposed, "C-t": strings.Replace(nine, "nine", "neuf", 1)} {
		outcome := propose()
		b.shell("sed -i s/nine/neuf/ a.txt")
		b.tm.Wait("C-c C-t take", patience)
		b.tm.Wait("! NINE", patience)
		b.is(emacsSide("proposal"), lines(proposed))
		b.is(emacsSide("before"), lines(strings.Replace(nine, "nine", "neuf", 1)))
		b.is(marks, "(9)")
		b.keys("C-c", "C-c")
		b.says("keep the proposal or take the file's text first")
		b.is(emacsSide("proposal"), lines(proposed))
		b.keys("C-c", key)
		b.is(emacsSide("proposal"), lines(want))
		b.is(marks, "nil")
		b.keys("C-c", key)
		b.says("Nothing is in conflict here")
		if key == "C-t" { // nothing is left to accept, so the user adds something
			b.keys("M->")
			b.text("ten\r")
			want += "ten\n"
			b.is(emacsSide("proposal"), lines(want))
		}
		b.keys("C-c", "C-c")
		if got := outcome(); got != want {
			t.Errorf("%s: accepted %q", key, got)
		}
		b.is(windows, "(1 a.txt)")
	}
}

func emacsFileGone(t *testing.T, f flavour) {
	b, propose := emacsProposal(t, f)
	outcome := propose()
	b.shell("rm a.txt")
	b.says("the file is gone from the disk")
	b.is(emacsSide("before"), "")
	b.keys("C-c", "C-c")
	b.says("keep the proposal")
	b.keys("C-c", "C-o")
	b.says("the proposal stands")
	b.keys("C-c", "C-c")
	if got := outcome(); got != proposed {
		t.Errorf("accepted %q", got)
	}
	b.is(windows, "(1 a.txt)")
}

func emacsCompanionBack(t *testing.T, f flavour) {
	b, propose := emacsProposal(t, f)
	propose()
	b.shell("sed -i s/two/TWO/ a.txt")
	b.is(emacsSide("before"), lines(strings.Replace(nine, "two", "TWO", 1)))
	b.keys("M-<", "C-n", "C-n", "C-n", "C-n", "C-e")
	b.text(", edited")
	b.until("the edit", func() bool { return b.journal("five, edited") })
	old := b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.write("a.txt", strings.NewReplacer("two", "TWO", "seven", "SEVEN").Replace(nine))
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	want := strings.NewReplacer("two", "TWO", "seven", "SEVEN", "five", "five, edited").Replace(proposed)
	b.is(emacsSide("proposal"), lines(want))
	b.text(" too")
	b.keys("C-c", "C-c")
	b.is(windows, "(1 a.txt)")
	want = strings.Replace(want, "edited", "edited too", 1)
	b.until("the outcome", func() bool { return b.history(want) })
}

func emacsTyping(t *testing.T, f flavour) {
	b, propose := emacsProposal(t, f)
	outcome := propose()
	b.keys("M-<", "C-n", "C-n", "C-n", "C-n", "C-e")
	b.is(emacsView, "(3 a.txt <proposal> 4 five)")
	b.typesAtOnce()
	want := typedAtOnce()
	b.is(emacsSide("proposal"), lines(want))
	b.is(emacsView, "(3 a.txt <proposal> "+itoa(4+len(sentence))+" five"+sentence+")")
	b.keys("C-c", "C-c")
	if got := outcome(); got != want {
		t.Errorf("accepted %q", got)
	}
	b.is(windows, "(1 a.txt)")
}

func emacsShape(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": "one\r\ntwo\r\nthree\r\nfour"})
	b.open("a.txt")
	a := b.connect()
	a.OpenDiff(b.path("a.txt"), "one\r\ntwo\r\nthree\r\n4")
	b.is(windows, "(3 a.txt <proposal>)")
	b.write("a.txt", "0\r\none\r\ntwo\r\nthree\r\nfour")
	b.is(emacsSide("proposal"), "0|one|two|three|4")
	b.keys("M->")
	b.text("!")
	b.is(emacsSide("proposal"), "0|one|two|three|4!")
	if got := a.CloseDiff(b.path("a.txt")); got != `{"content":"0\r\none\r\ntwo\r\nthree\r\n4!"}` {
		t.Error(got)
	}
	b.is(windows, "(1 a.txt)")
}
