package editors

import (
	"os"
	"strings"
	"testing"
)

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

// What is no UTF-8 cannot be accepted: the diff stays, and says so.
func vimInvalid(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.offer(a, "a", "new\n")
	b.text("A")
	b.keys("C-v")
	b.text("xff")
	b.escape()
	b.ex(`call setline(2, "bad \xff byte")`)
	b.is("line('$')", "2")
	b.ex("w")
	b.says("not UTF-8")
	b.is("&diff . tabpagenr('$')", "12")
	if got := a.CloseDiff(b.path("a")); strings.Contains(got, "bad") {
		t.Error(got)
	}
	b.is("&diff . tabpagenr('$')", "01")
}

// F-5: where the first lines are gone, these stand above the cursor, in sight.
func vimFirstLines(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": hundred()}, "a")
	a.OpenDiff(b.path("a"), strings.TrimPrefix(hundred(), "line 1\nline 2\n"))
	b.is(b.place(), "a <proposal>")
	b.is("line('.') . winsaveview().topfill", "12")
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

// :saveas PATH writes a copy there, and decides nothing.
func vimSaveAs(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	a.OpenDiff(b.path("a"), "new\r\nlines\r\n")
	b.shows("a", "new\nlines\n")
	b.types(1, "er")
	b.ex("saveas named")
	b.until("the copy", func() bool { data, _ := os.ReadFile(b.path("named")); return string(data) == "newer\r\nlines\r\n" })
	b.is("&diff . tabpagenr('$') . winnr() . bufname('%')[:8] . &modified", "122pollux://0")
	a.Quiet()
	b.types(1, " still")
	b.accept()
	b.accepted(a, "a", "newer still\r\nlines\r\n")
	b.calm("a")
	if data, err := os.ReadFile(b.path("named")); string(data) != "newer\r\nlines\r\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// :e! shows what was proposed once more, on either side, with its colours.
func vimReadAgain(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "package a\n"}, "a.go")
	a.OpenDiff(b.path("a.go"), "package b\r\n")
	const right = "getline(1) . &fileformat . &syntax . &diff . &modified . &modifiable . winnr()"
	b.is(right, "package bdosgo1012")
	b.types(1, "cdef")
	b.is(right, "package bcdefdosgo1012")
	b.ex("e!")
	b.is(right, "package bdosgo1012")
	b.keys("C-w", "p")
	b.ex("e!")
	b.is(right, "package aunixgo1001")
	b.keys("C-w", "p")
	a.Quiet()
	b.types(1, "y")
	b.until("the edit", func() bool { return b.journal("package by") })
	if got := a.CloseDiff(b.path("a.go")); got != `{"content":"package by\r\n"}` {
		t.Error(got)
	}
	b.is("&diff . tabpagenr('$') . expand('%')", "01a.go")
}

// Under every setting of saving the user's own unsaved text stays, and only :w by hand accepts.
func vimSaveSettings(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a", "b")
	for _, settings := range []string{"hidden noautowrite", "nohidden noautowrite", "nohidden autowrite", "hidden autowriteall backup writebackup confirm"} {
		b.ex("set " + settings)
		b.text("ggccunsaved")
		b.escape()
		b.is("getline(1) . &modified", "unsaved1")
		b.offer(a, "b", "new\n")
		b.types(1, "x")
		b.ex("w")
		b.accepted(a, "b", "newx\n")
		b.is("tabpagenr('$') . expand('%')", "1a")
		if data, _ := os.ReadFile(b.path("b")); string(data) != "b\n" {
			t.Errorf("%s wrote %q", settings, data)
		}
		b.is("getline(1)", "unsaved")
		b.ex("edit! | set hidden& autowrite& autowriteall& backup& confirm&")
		b.is("&modified", "0")
		b.write("a", "a\n")
		b.ex("edit!")
		b.is("getline(1)", "a")
	}
}

// What the CLI writes into a long file can be undone, and the user's own changes before it.
func vimLongUndo(t *testing.T, f flavour) {
	text := strings.Repeat("line\n", 20_000)
	b, a := user(t, f, map[string]string{"a": text}, "a")
	reload := b.eval("&undoreload")
	b.text("xu\x12") // a change, taken back and made again
	b.ex("w")
	b.is("getline(1) . &modified", "ine0")
	a.OpenDiff(b.path("a"), "new\n"+text)
	b.is("&diff . getline(1)", "1new")
	b.ex("w")
	a.Outcome()
	b.is("&diff . tabpagenr('$')", "01")
	b.write("a", "new\n"+text)
	b.is("getline(1)", "new")
	b.text("u")
	b.is("getline(1)", "ine")
	b.text("u")
	b.is("getline(1)", "line")
	b.is("&undoreload", reload)
}

// :edit in the proposal's window: in Neovim the proposal waits, and :Pollux
// review shows it again beside its file; in Vim it is rejected.
func vimEditOther(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	b.offer(a, "a", "new\n")
	b.types(1, "er")
	b.ex("e " + b.path("b"))
	if f.name == "vim" {
		b.rejected(a, "a")
		b.is("getline(1) . &diff", "b0")
		return
	}
	b.is("getline(1)", "b")
	b.ex("Pollux review")
	b.is("getline(1) . &diff . winnr('$') . tabpagenr('$')", "newer123")
	b.is("getbufline(winbufnr(1), 1)[0]", "a")
	b.ex("w")
	b.accepted(a, "a", "newer\n")
	b.is("tabpagenr('$') . winnr('$') . getline(1)", "21b")
}

// F-8, F-11: what the CLI writes by a rule, without a diff, is shown as well,
// and so is what it writes outside the project.
func vimUnseen(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "../outside": "old\n"}, "a")
	b.ex("set noautoread hidden | e ../outside | b 1")
	b.is("expand('%:t') . bufloaded(bufnr('outside'))", "a1")
	b.ex("Pollux policy accept pattern " + b.project + "/*")
	b.says("1 rule")
	for _, text := range []string{"one\n", "two, and longer\n"} {
		a.OpenDiff(b.path("a"), text)
		b.accepted(a, "a", text)
		b.write("../outside", text)
		b.write("a", text)
		b.is("join(getline(1, '$'), '|')", strings.TrimSpace(text))
	}
	b.is("getbufline(bufnr('outside'), 1)[0] . mode(1)", "two, and longern")
	b.text("u")
	b.is("getline(1)", "one")
}
