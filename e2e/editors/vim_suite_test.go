package editors

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/terminal"
)

// C-1 … C-6: what is focused, exactly, and nothing stale.
func vimContext(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": sample, "b.txt": "b\n", ".git/COMMIT_EDITMSG": "m\n"}, "a.go")
	b.sees(a, "a.go 1:1")
	b.text("3G$")
	b.sees(a, "a.go 3:17") // tab, 5 + 1 + 5 + 1 letters, the emoji is two units, a blank
	b.text("Fw")
	b.sees(a, "a.go 3:8")
	b.ex("split b.txt")
	b.sees(a, "b.txt 1:1")
	b.ex("help")
	b.sees(a, "none")
	b.ex("q")
	b.sees(a, "b.txt 1:1")
	b.ex("enew")
	b.sees(a, "none")
	b.ex("e .git/COMMIT_EDITMSG")
	b.sees(a, "none")
	b.ex("tabnew a.go")
	b.sees(a, "a.go 1:1")
	b.ex("saveas c.go")
	b.sees(a, "c.go 1:1")
	b.ex("cd " + b.root)
	b.ex("bwipeout!")
	for _, file := range a.Context("a context without c.go", func(files []agentFile) bool { return !strings.Contains(names(files), "c.go") }) {
		if strings.Contains(file.Path, "COMMIT") {
			t.Errorf("%+v", file)
		}
	}
}

// C-4, C-5: every kind of selection, gone when it is gone.
func vimSelection(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": sample}, "a.go")
	b.text("3G0wviw")
	b.sees(a, `a.go 3:6 "hällo"`)
	b.text("w") // extends to the next word's first letter
	b.sees(a, `a.go 3:8 "hällo w"`)
	b.escape()
	b.sees(a, `a.go 3:8 "hällo w"`) // until the cursor moves
	b.text("j")
	b.sees(a, "a.go 4:11")
	b.text("Vk")
	b.sees(a, `a.go 3:8 "\thällo wörld 😀 x\nfourth line\n"`)
	b.escape()
	b.text("4G0v$")
	b.sees(a, `a.go 4:12 "fourth line\n"`)
	b.escape()
	b.text("gg3Gf😀v")
	b.sees(a, `a.go 3:14 "😀"`)
	b.escape()
	b.text("4G0")
	b.keys("C-v")
	b.text("jl")
	b.sees(a, `a.go 5:2 "fo\nla"`)
	b.text("$")
	b.sees(a, `a.go 5:5 "fourth line\nlast"`)
	b.escape()
	b.text("dd0")
	b.sees(a, "a.go 4:1")
}

// F-6: edited by diff commands.
func vimHunk(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"}, "a.go")
	a.OpenDiff(b.path("a.go"), "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\n")
	b.is("&diff . getline(1) . &syntax", "1ONEgo")
	b.text("ggdo") // that hunk as it was
	b.is("getline(1)", "one")
	b.adds("hand 😀")
	b.accept()
	b.accepted(a, "a.go", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\nhand 😀\n")
	b.calm("a.go")
}

// F-6: new lines end as the others do, and an emptied proposal is not accepted.
func vimExact(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.txt": "old\r\nlines\r\n"}, "a.txt")
	a.OpenDiff(b.path("a.txt"), "dos\r\nlines\r\n")
	b.is("&diff . &ff", "1dos")
	b.text("onew")
	b.escape()
	b.accept()
	b.accepted(a, "a.txt", "dos\r\nnew\r\nlines\r\n")
	b.calm("a.txt")
	b.step("the user empties the proposal")
	b.offer(a, "a.txt", "text\n")
	b.text("dd")
	b.accept()
	b.says("emptied")
	b.text("u")
	b.shows("a.txt", "text\n")
	b.accept()
	b.accepted(a, "a.txt", "text\n")
}

// F-5: where the first lines are gone, these stand above the cursor, in sight.
func vimFirstLines(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": hundred()}, "a")
	a.OpenDiff(b.path("a"), strings.TrimPrefix(hundred(), "line 1\nline 2\n"))
	b.is(b.place(), "a <proposal>")
	b.is("line('.') . winsaveview().topfill", "12")
}

// An editor for a commit message has no companion, and nothing to complain of.
func vimCommit(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{".git/COMMIT_EDITMSG": "m\n"})
	b.tm = terminal.Start(b, terminal.Options{Dir: b.project, Env: b.env, Args: f.start(t, b, []string{".git/COMMIT_EDITMSG"})})
	b.Cleanup(b.diagnose)
	b.is("expand('%:t') . mode(1)", "COMMIT_EDITMSGn")
	b.pause(500)
	b.is("mode(1)", "n")
	if says := b.eval(f.messages); strings.Contains(says, "Error") || strings.Contains(says, "E1") || len(b.files()) != 0 {
		t.Errorf("it says %s, and there are %v", says, b.files())
	}
	b.is(f.running, "stopped")
}

// A file that the CLI has emptied and not filled yet is not the last word; and
// what it writes is shown whatever 'autoread' is, which stays as it was.
func vimHalfWritten(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "one\ntwo\n"}, "a")
	own := b.eval("string(&l:autoread)") // none
	a.OpenDiff(b.path("a"), "one\n2\n")
	b.is("&diff . getline(2)", "12")
	b.ex("w")
	a.Outcome()
	b.is("&diff . tabpagenr('$')", "01")
	b.write("a", "")
	b.is("line('$') . getline(1)", "1")
	b.write("a", "one\n2\n")
	b.is("join(getline(1, '$'), '|') . mode(1)", "one|2n")
	b.is("string(&l:autoread)", own)
	b.ex("setlocal noautoread")
	b.is("&l:autoread", "0")
	b.offer(a, "a", "1\n")
	b.ex("w")
	a.Outcome()
	b.is("&diff . tabpagenr('$')", "01")
	b.write("a", "1\n")
	b.is("join(getline(1, '$'), '|') . &l:autoread", "10")
}

// F-5: a file that is not there yet, whose buffer is open already: it shows the text, and nobody is asked whether it may.
func vimOpenBefore(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.ex("split later.txt | wincmd w")
	b.is("winnr('$') . &diff", "20")
	b.offer(a, "later.txt", "here\n")
	b.accept()
	b.accepted(a, "later.txt", "here\n")
	b.is("&diff . tabpagenr('$')", "01")
	b.write("later.txt", "here\n")
	b.is(b.buffer("later.txt"), "here")
	b.is(b.modified("later.txt"), "0")
	b.ex("wincmd w | checktime")
	b.is("mode(1) . expand('%') . getline(1)", "nlater.txthere")
}
