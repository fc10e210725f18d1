//go:build unix

package editors

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestFollows: a proposal follows its file (SPEC F-13, F-10).
func TestFollows(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){
		"base": followsBase, "too late": followsTooLate, "other agent": followsOtherAgent, "conflict": followsConflict, "gone": followsGone, "restart": followsRestart, "typing": followsTyping, "shape": followsShape,
	})
}

// TestVimFollows: what the user saves in their own window is merged into the proposal as well, which they find as they left it.
func TestVimFollows(t *testing.T) {
	playOn(t, vis, map[string]func(*testing.T, flavour){"own window": func(t *testing.T, f flavour) {
		b, a := proposing(t, f)
		b.types(5, ", edited")
		b.step("the user changes the file in its own tab page")
		b.text("gT")
		b.is("tabpagenr() . &diff", "10")
		b.ex("edit | 3s/three/THREE/ | w")
		b.is("getline(3) . &modified", "THREE0")
		b.step("the user goes back to the proposal")
		b.text("gt")
		want := strings.NewReplacer("three", "THREE", "five", "five, edited").Replace(proposed)
		b.shows("a.txt", want)
		b.is("line('.') . winnr()", "52")
		a.Quiet()
		b.accept()
		b.accepted(a, "a.txt", want)
		b.calm("a.txt")
	}})
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

// What a command changes is merged into the proposal, which keeps the cursor, marks and what was typed.
func followsBase(t *testing.T, f flavour) {
	b, a := proposing(t, f)
	b.step("the user edits the proposal")
	b.types(5, ", edited")
	b.mark()
	b.step("the file changes")
	b.shell("sed -i '1i zero' a.txt")
	want := "zero\n" + strings.Replace(proposed, "five", "five, edited", 1)
	b.shows("a.txt", want)
	b.is(b.original("a.txt"), lines("zero\n"+nine))
	b.is(b.cursor(), "6 five, edited")
	b.is(b.marked(), "6")
	b.says("the file has changed")
	a.Quiet()
	b.step("the user accepts")
	b.accept()
	b.accepted(a, "a.txt", want)
	b.calm("a.txt")
}

// An acceptance that the change overtakes is refused, also when its window has gone with it: what is newer is shown first.
func followsTooLate(t *testing.T, f flavour) {
	b, a := proposing(t, f)
	changed, want := strings.Replace(nine, "one", "ONE", 1), strings.NewReplacer("one", "ONE", "five", "five, edited").Replace(proposed)
	overtakes := []way{
		{"while the companion stands still", func() { b.kill(b.companion(), syscall.SIGSTOP); b.write("a.txt", changed) }},
		{"unnoticed", func() { b.unnoticed("a.txt", changed) }},
	}
	for _, accept := range b.accepting()[:3] {
		for i, change := range overtakes {
			if i == 0 && f.name == "emacs" { // whose own calls fail then
				continue
			}
			b.step("the file changes %s, and the user accepts by %s", change.name, accept.name)
			companion := b.companion()
			change.do()
			b.types(5, ", edited")
			b.is(b.cursor(), "5 five, edited")
			accept.do()
			if i == 0 {
				b.pause(100)
				b.kill(companion, syscall.SIGCONT)
			}
			b.says("the file has changed since this was shown")
			b.shows("a.txt", want)
			a.Quiet()
			b.step("the user accepts by %s again", accept.name)
			accept.do()
			b.accepted(a, "a.txt", want)
			b.calm("a.txt")
			b.proposes(a)
		}
	}
}

// Two agents' proposals for one file know of each other: the second is shown on what the first will have made of it.
func followsOtherAgent(t *testing.T, f flavour) {
	b, first := proposing(t, f)
	second := b.connect()
	second.OpenDiff(b.path("a.txt"), strings.Replace(nine, "one", "ONE", 1))
	b.step("one more waits")
	b.tm.Wait("1 more for this file", patience)
	b.until("whose the shown one is, above or below it", func() bool { // the message at the bottom names the other
		return strings.Contains(b.tm.Screen(), "Gemini CLI #1")
	})
	b.accept()
	b.accepted(first, "a.txt", proposed)
	b.step("the second is shown on the first")
	want := strings.Replace(proposed, "one", "ONE", 1)
	b.shows("a.txt", want)
	b.is(b.original("a.txt"), lines(proposed))
	b.write("a.txt", proposed) // as the first CLI does
	b.pause(300)
	b.accept()
	b.accepted(second, "a.txt", want)
	b.calm("a.txt")
}

// A conflict stands beside the text, never in it, and waits for a word of the user's.
func followsConflict(t *testing.T, f flavour) {
	b, a := proposing(t, f)
	changed := strings.Replace(nine, "nine", "neuf", 1)
	for _, tt := range []struct {
		decide way
		want   string
	}{{way{"keep", b.keep}, proposed}, {way{"take", b.take}, changed}} {
		b.step("the file changes where the proposal does")
		b.shell("sed -i s/nine/neuf/ a.txt")
		for _, hint := range b.hints("conflict") {
			b.tm.Wait(hint, patience)
		}
		b.says("the file has changed on disk where the proposal changes it")
		b.shows("a.txt", proposed)
		b.is(b.original("a.txt"), lines(changed))
		b.is(b.conflicts(), "9")
		b.step("the user accepts before they %s", tt.decide.name)
		b.accept()
		b.says("keep the proposal or take the file's text first")
		b.shows("a.txt", proposed)
		a.Quiet()
		b.step("the user decides to %s", tt.decide.name)
		tt.decide.do()
		b.shows("a.txt", tt.want)
		b.is(b.conflicts(), "")
		a.Quiet() // that was no acceptance
		tt.decide.do()
		b.says("othing is in conflict here")
		want := tt.want
		if tt.decide.name == "take" { // nothing is left to accept, so the user adds something
			want += "ten\n"
			b.adds("ten")
			b.shows("a.txt", want)
		}
		b.accept()
		b.accepted(a, "a.txt", want)
		b.calm("a.txt")
		b.until("the hint's end", func() bool { return !strings.Contains(b.tm.Screen(), ":w accepts") })
		b.proposes(a)
	}
}

// A file that is gone conflicts as a whole.
func followsGone(t *testing.T, f flavour) {
	b, a := proposing(t, f)
	b.step("the file is removed")
	b.shell("rm a.txt")
	b.says("the file is gone from the disk")
	b.is(b.original("a.txt"), "")
	b.is(b.proposal("a.txt"), lines(proposed))
	b.step("the user accepts")
	b.accept()
	b.says("keep the proposal")
	a.Quiet()
	b.step("the user keeps the proposal")
	b.keep()
	b.says("the proposal stands")
	b.accept()
	b.accepted(a, "a.txt", proposed)
	b.calm("a.txt")
}

// What changes while the companion is away is shown when it is back.
func followsRestart(t *testing.T, f flavour) {
	b, _ := proposing(t, f)
	b.step("the file changes, and the user edits the proposal")
	b.shell("sed -i s/two/TWO/ a.txt")
	b.shows("a.txt", strings.Replace(proposed, "two", "TWO", 1))
	b.is(b.original("a.txt"), lines(strings.Replace(nine, "two", "TWO", 1)))
	b.types(5, ", edited")
	b.until("the edit", func() bool { return b.journal("five, edited") })
	b.step("the companion dies, and the file changes")
	old := b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.write("a.txt", strings.NewReplacer("two", "TWO", "seven", "SEVEN").Replace(nine))
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	want := strings.NewReplacer("two", "TWO", "seven", "SEVEN", "five", "five, edited").Replace(proposed)
	b.shows("a.txt", want)
	b.step("the user edits once more and accepts")
	b.types(6, " too")
	b.accept()
	b.calm("a.txt")
	b.until("the outcome", func() bool { return b.history(strings.Replace(want, "six", "six too", 1)) })
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
func followsTyping(t *testing.T, f flavour) {
	b, a := proposing(t, f)
	b.step("the file changes while the user types")
	b.begin(5)
	b.typesAtOnce()
	want, line := typedAtOnce(), itoa(5+len(sentence)/4)
	b.is(b.proposal("a.txt"), lines(want))
	b.is(b.typing(), "1")
	b.is(b.cursor(), line+" five"+sentence)
	b.done()
	b.is(b.cursor(), line+" five"+sentence)
	b.step("the user accepts")
	b.accept()
	b.accepted(a, "a.txt", want)
	b.calm("a.txt")
}

// Line ends, a byte order mark and a missing last newline of the newest text come back as they are.
func followsShape(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": "one\r\ntwo\r\nthree\r\nfour"})
	b.open("a.txt")
	a := b.connect()
	a.OpenDiff(b.path("a.txt"), "one\r\ntwo\r\nthree\r\n4")
	b.shows("a.txt", "one\ntwo\nthree\n4")
	b.step("the file gets a new first line")
	b.write("a.txt", "0\r\none\r\ntwo\r\nthree\r\nfour")
	b.shows("a.txt", "0\none\ntwo\nthree\n4")
	b.types(2, ", edited")
	b.until("the edit", func() bool { return b.journal("one, edited") })
	b.step("the file gets a byte order mark")
	if err := os.Remove(b.path("a.txt")); err != nil {
		t.Fatal(err)
	}
	b.write("a.txt", "\ufeff0\r\none\r\ntwo\r\nTHREE\r\nfour")
	b.until("the newest", func() bool { return strings.Contains(b.eval(b.original("a.txt")), "THREE") })
	if got := a.CloseDiff(b.path("a.txt")); !strings.Contains(got, `0\r\none, edited\r\ntwo\r\n`) {
		t.Error(got)
	}
	b.calm("a.txt")
}
