//go:build unix

package editors

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// ways are those in which a tool changes a file in an agent's shell: each makes a.txt hold what is in ../new.
var ways = map[string]string{
	"plain write":   "cat ../new > a.txt",
	"atomic rename": "cp ../new a.tmp && mv a.tmp a.txt",
	"sed":           "cp ../new a.txt && sed -i s/zzz/zzz/ a.txt",
	"recreated":     "rm a.txt && sleep 0.4 && cp ../new a.txt",
}

// half is how soon a buffer follows the disk.
const half = 500 * time.Millisecond

// TestDisk: while a CLI is connected, buffers follow the disk (SPEC F-8).
func TestDisk(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"follows": diskFollows, "unsaved": diskUnsaved, "gone": diskGone, "soon": diskSoon})
}

// TestVimDisk: what Neovim and Vim do besides.
func TestVimDisk(t *testing.T) {
	playOn(t, vis, map[string]func(*testing.T, flavour){"merge": vimMerge, "alone": vimDiskAlone})
}

// TestVimAsked: Vim's question before it writes over what others have written stays on the screen when an agent comes.
func TestVimAsked(t *testing.T) {
	t.Parallel()
	b := looking(t, vim(t), nine)
	b.types(5, " mine")
	b.shell("sed -i s/one/ONE/ a.txt")
	b.says("a.txt: has changed on disk; your unsaved changes are kept")
	b.ex("w")
	const question = "Do you really want to write to it"
	b.tm.Wait(question, patience)
	b.step("an agent comes")
	b.connect()
	b.is("len(pollux#state().sessions)", "2")
	if screen := b.tm.Screen(); !strings.Contains(screen, question) {
		t.Errorf("the question has gone from the screen, and mode() is %s", b.eval("mode(1)"))
	}
	b.text("n")
	b.pressUntil("Enter", "the question's end", func() bool { return b.eval("&modified . mode(1)") == "1n" })
}

// looking opens a.txt where a CLI is connected.
func looking(t *testing.T, f flavour, text string) *bench {
	t.Helper()
	b := newBench(t, f, map[string]string{"a.txt": text})
	b.open("a.txt")
	b.sees(b.connect(), "a.txt 1:1")
	return b
}

// uncomplaining checks that the editor has not complained by itself of a file that changed.
func (b *bench) uncomplaining() {
	b.Helper()
	says := b.eval(b.f.messages)
	for _, complaint := range b.complaints() {
		if strings.Contains(says, complaint) {
			b.Errorf("it says %s", says)
		}
	}
}

// Cursor, view, folds, marks and undo stay with their text, whoever writes, and nothing is asked, also not by the next save.
func diskFollows(t *testing.T, f flavour) {
	b := looking(t, f, hundred())
	b.arrange()
	b.is(b.arranged(), "60 3 60 75 70")
	by, text, before := 0, hundred(), ""
	for name, command := range ways {
		b.step("the file changes by %s", name)
		by += 2
		before, text = text, strings.Repeat("new\n", by)+strings.Replace(hundred(), "line 90\n", "ninety "+name+"\n", 1)
		b.write("../new", text)
		b.shell(command)
		b.is(b.buffer("a.txt"), lines(text))
		b.is(b.arranged(), strings.Join([]string{itoa(60 + by), "3", itoa(60 + by), itoa(75 + by), itoa(70 + by)}, " "))
		b.is(b.modified("a.txt"), "0")
		b.calm("a.txt")
	}
	b.step("the user takes that back, and makes it again")
	b.undo()
	b.is(b.buffer("a.txt"), lines(before))
	b.is(b.modified("a.txt"), "1")
	b.redo()
	b.is(b.buffer("a.txt"), lines(text))
	b.step("the user edits and saves")
	b.types(60+by, "mine")
	b.save()
	b.is(b.modified("a.txt"), "0")
	b.calm("a.txt")
	if data, _ := os.ReadFile(b.path("a.txt")); string(data) != strings.Replace(text, "line 60\n", "line 60mine\n", 1) {
		b.Errorf("a.txt holds %q", data)
	}
	b.uncomplaining()
}

// Unsaved changes are kept, announced once, and shown beside the other two texts when the user likes.
func diskUnsaved(t *testing.T, f flavour) {
	b := looking(t, f, nine)
	mine := strings.Replace(nine, "five", "five mine", 1)
	b.types(5, " mine")
	b.is(b.modified("a.txt"), "1")
	b.step("the file changes")
	b.shell("sed -i s/one/ONE/ a.txt")
	b.says("a.txt: has changed on disk; your unsaved changes are kept")
	b.step("the file changes again")
	b.shell("sed -i s/two/TWO/ a.txt")
	b.pause(700)
	if says := b.eval(f.messages); strings.Count(says, "has changed on disk;") != 1 {
		b.Errorf("it says %s", says)
	}
	b.uncomplaining()
	b.is(b.buffer("a.txt"), lines(mine))
	b.is(b.modified("a.txt"), "1")
	b.calm("a.txt")
	b.step("the user looks at all three texts")
	b.command("pollux.merge")
	b.is(b.merging("disk"), lines(strings.NewReplacer("one", "ONE", "two", "TWO").Replace(nine)))
	b.is(b.merging("began"), lines(nine))
	b.is(b.merging("mine"), lines(mine))
}

// The merge takes lines of the disk's, and a save writes over what is there, which the user has seen.
func vimMerge(t *testing.T, f flavour) {
	b := looking(t, f, nine)
	b.types(5, " mine")
	b.shell("sed -i 's/one/ONE/; s/two/TWO/' a.txt")
	b.says("a.txt: has changed on disk; your unsaved changes are kept")
	b.ex("Pollux merge")
	b.is("tabpagenr() . winnr('$') . winnr() . &diff", "2331")
	b.ex("1,2diffget disk")
	b.is(side(3), lines(strings.NewReplacer("one", "ONE", "two", "TWO", "five", "five mine").Replace(nine)))
	b.ex("w")
	b.tm.Wait("Do you really want to write to it", patience) // over what is on disk, which the user has seen
	b.text("y")
	b.pressUntil("Enter", "the end of what it says then", func() bool { return b.eval("&modified . mode(1)") == "0n" })
	b.ex("tabclose")
	b.is("tabpagenr('$') . &modified . &diff . getline(1)", "100ONE")
	b.shell("sed -i s/nine/NINE/ a.txt")
	b.is("getline('$') . &modified", "NINE0")
}

// A file that is gone keeps its text in the buffer; one that comes into being is shown.
func diskGone(t *testing.T, f flavour) {
	b := looking(t, f, nine)
	holds := func(name, text string) {
		t.Helper()
		b.is(b.buffer(name), text)
		b.is(b.modified(name), "0")
	}
	b.shell("echo first > a.txt") // from here on the file is watched
	holds("a.txt", "first")
	b.write("a.txt", nine)
	holds("a.txt", lines(nine))
	b.step("the file is removed")
	b.shell("rm a.txt")
	b.says("a.txt: is gone from the disk; its buffer keeps the text")
	b.is(b.buffer("a.txt"), lines(nine))
	b.calm("a.txt")
	b.step("the file comes back")
	b.shell("echo back > a.txt")
	holds("a.txt", "back")
	b.step("the user opens a file that is not there, and it is made")
	b.visit("later.txt")
	b.calm("later.txt")
	b.pause(300)
	b.shell("echo here > later.txt")
	holds("later.txt", "here")
	b.save()
	b.is(b.modified("later.txt"), "0")
	b.calm("later.txt")
	b.step("a file changes that is in no window")
	b.visit("a.txt")
	b.calm("a.txt")
	b.shell("echo hidden > later.txt")
	holds("later.txt", "hidden")
	b.calm("a.txt")
}

// Within half a second, by the best of several.
func diskSoon(t *testing.T, f flavour) {
	b := looking(t, f, hundred())
	best := time.Hour
	for i := range 5 {
		text := "first " + itoa(i) + "\n" + hundred()
		b.write("a.txt", text)
		watch := pace.Start(t)
		b.is(b.buffer("a.txt"), lines(text))
		best = min(best, watch.Took())
	}
	if best > pace.Slack*half {
		t.Errorf("took %v", best)
	}
	t.Logf("took %v", best)
}

// Without a CLI Neovim and Vim are left to themselves.
func vimDiskAlone(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	b.ex("set noautoread")
	b.shell("sed -i s/one/ONE/ a.txt")
	b.pause(1000)
	b.is("getline(1) . exists('#FileChangedShell')", "one0")
	a := b.connect() // what has changed before it came is shown as well
	b.sees(a, "a.txt 1:1")
	b.is("getline(1) . mode(1)", "ONEn")
}
