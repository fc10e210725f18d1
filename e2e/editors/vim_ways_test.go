package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

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

// forgetful kills the companion and what it would remember by.
func (b *bench) forgetful() {
	b.Helper()
	b.until("the journal", func() bool { return b.journal("new") })
	old := b.stamp()
	if out, err := exec.Command("kill", "-STOP", itoa(b.companion())).CombinedOutput(); err != nil { // it writes no more
		b.Fatalf("%v: %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(b.root, "s", "pollux", "resume")); err != nil {
		b.Fatal(err)
	}
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
}
