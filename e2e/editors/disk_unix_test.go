//go:build unix

package editors

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// hundred are lines to be somewhere in.
func hundred() string {
	var s strings.Builder
	for i := range 100 {
		s.WriteString("line " + itoa(i+1) + "\n")
	}
	return s.String()
}

// ways are those in which a tool changes a file in an agent's shell: each makes a.txt hold what is in ../new.
var ways = map[string]string{
	"plain write":   "cat ../new > a.txt",
	"atomic rename": "cp ../new a.tmp && mv a.tmp a.txt",
	"sed":           "cp ../new a.txt && sed -i s/zzz/zzz/ a.txt",
	"recreated":     "rm a.txt && sleep 0.4 && cp ../new a.txt",
}

// half is how soon a buffer follows the disk.
const half = 500 * time.Millisecond

// TestVimDisk: while a CLI is connected, buffers follow the disk in Neovim and Vim (SPEC F-8).
func TestVimDisk(t *testing.T) {
	t.Parallel()
	for _, f := range []flavour{neovim(t), vim(t)} {
		for name, test := range map[string]func(*testing.T, flavour){"follows": vimDisk, "unsaved": vimDiskUnsaved, "gone": vimDiskGone, "soon": vimDiskSoon, "alone": vimDiskAlone} {
			t.Run(f.display+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, f)
			})
		}
	}
}

// Cursor, view, folds, marks and undo stay with their text, whoever writes, and nothing is asked, also not by the next :w.
func vimDisk(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": hundred()})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	b.ex("set noautoread hidden foldmethod=manual | 70,75fold | normal! zR")
	b.text("75Gmx70Gzc60Gzt3l")
	b.is("line('.') . line('w0') . foldclosed(72) . line(\"'x\") . col('.')", "606070754")
	by := 0
	for name, command := range ways {
		t.Log(name)
		by += 2
		text := strings.Repeat("new\n", by) + strings.Replace(hundred(), "line 90\n", "ninety "+name+"\n", 1)
		b.write("../new", text)
		b.shell(command)
		b.is("getline(1) . line('$') . getline("+itoa(90+by)+")", "new"+itoa(100+by)+"ninety "+name)
		b.is("line('.') . ' ' . line('w0') . ' ' . foldclosed("+itoa(72+by)+") . ' ' . line(\"'x\") . ' ' . col('.') . ' ' . mode(1) . &modified",
			strings.Join([]string{itoa(60 + by), itoa(60 + by), itoa(70 + by), itoa(75 + by), "4", "n0"}, " "))
		b.is("getline('.')", "line 60")
	}
	b.text("u")
	b.is("line('$') . &modified", itoa(100+by-2)+"1")
	b.text("\x12")
	b.is("line('$')", itoa(100+by))
	b.ex("call search('line 60$', 'w')")
	b.text("Amine")
	b.escape()
	b.ex("w")
	b.is("&modified . mode(1) . getline('.')", "0nline 60mine")
	if data, _ := os.ReadFile(b.path("a.txt")); !strings.Contains(string(data), "line 60mine\n") {
		t.Error("not saved")
	}
	if says := b.eval(f.messages); strings.Contains(says, "W1") || strings.Contains(says, "E211") || strings.Contains(says, "WARNING") {
		t.Errorf("it says %s", says)
	}
}

// Unsaved changes are kept, announced once, and shown beside the other two texts when the user likes.
func vimDiskUnsaved(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	b.text("5GA mine")
	b.escape()
	b.is("&modified", "1")
	b.shell("sed -i s/one/ONE/ a.txt")
	b.says("a.txt: has changed on disk; your unsaved changes are kept")
	b.shell("sed -i s/two/TWO/ a.txt")
	b.pause(700)
	if says := b.eval(f.messages); strings.Count(says, "has changed on disk") != 1 || strings.Contains(says, "W12") {
		t.Errorf("it says %s", says)
	}
	b.is("mode(1) . &modified . "+"join(getline(1, '$'), '|')", "n1"+lines(strings.Replace(nine, "five", "five mine", 1)))
	b.ex("Pollux merge")
	b.is("tabpagenr() . winnr('$') . winnr() . &diff", "2331")
	b.is(side(1), lines(strings.NewReplacer("one", "ONE", "two", "TWO").Replace(nine)))
	b.is(side(2), lines(nine))
	b.is(side(3), lines(strings.Replace(nine, "five", "five mine", 1)))
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
func vimDiskGone(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	b.ex("set hidden")
	b.shell("echo first > a.txt") // from here on the file is watched
	b.is("join(getline(1, '$'), '|')", "first")
	b.write("a.txt", nine)
	b.is("join(getline(1, '$'), '|')", lines(nine))
	b.shell("rm a.txt")
	b.says("a.txt: is gone from the disk; its buffer keeps the text")
	b.is("mode(1) . join(getline(1, '$'), '|')", "n"+lines(nine))
	b.shell("echo back > a.txt")
	b.is("mode(1) . join(getline(1, '$'), '|') . &modified", "nback0")
	b.ex("edit later.txt")
	b.is("expand('%')", "later.txt")
	b.pause(300)
	b.shell("echo here > later.txt")
	b.is("mode(1) . join(getline(1, '$'), '|') . &modified", "nhere0")
	b.ex("w")
	b.is("mode(1) . &modified", "n0")
	b.ex("b a.txt")
	b.shell("echo hidden > later.txt")
	b.is("getbufline('later.txt', 1, '$')[0] . mode(1)", "hiddenn")
}

// Within half a second, by the median of several.
func vimDiskSoon(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": hundred()})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	soon(t, b, "a.txt", func(text string) { b.is("getline(1)", text) })
}

func soon(t *testing.T, b *bench, name string, shown func(string)) {
	t.Helper()
	best := time.Hour
	for i := range 5 {
		text := "first " + itoa(i)
		b.write(name, text+"\n"+hundred())
		watch := pace.Start(t)
		shown(text)
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

// TestEmacsDisk: the same in Emacs.
func TestEmacsDisk(t *testing.T) {
	emacsSuite(t, map[string]func(*testing.T, flavour){"follows": emacsDisk, "unsaved": emacsDiskUnsaved, "gone": emacsDiskGone, "soon": emacsDiskSoon})
}

func emacsDisk(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": hundred()})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	b.eval(`(progn (goto-char (point-min)) (forward-line 74) (defvar bench-mark (point-marker)) (setq bench-mark (point-marker)) (forward-line -15) (forward-char 3) (recenter 0))`)
	const place = `(list (line-number-at-pos) (current-column) (line-number-at-pos (window-start)) (line-number-at-pos bench-mark) (buffer-modified-p))`
	b.is(place, "(60 3 60 75 nil)")
	by := 0
	for name, command := range ways {
		t.Log(name)
		by += 2
		b.write("../new", strings.Repeat("new\n", by)+strings.Replace(hundred(), "line 90\n", "ninety "+name+"\n", 1))
		b.shell(command)
		b.is(`(save-excursion (goto-char (point-min)) (forward-line `+itoa(89+by)+`) (list (count-lines (point-min) (point-max)) (buffer-substring-no-properties (line-beginning-position) (line-end-position))))`,
			"("+itoa(100+by)+" ninety "+name+")")
		b.is(place, "("+itoa(60+by)+" 3 "+itoa(60+by)+" "+itoa(75+by)+" nil)")
	}
	b.keys("C-_")
	b.is(`(list (count-lines (point-min) (point-max)) (buffer-modified-p))`, "("+itoa(100+by-2)+" t)")
	b.keys("C-x", "C-s")
	b.is(`(list (active-minibuffer-window) (buffer-modified-p))`, "(nil nil)")
}

func emacsDiskUnsaved(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	b.keys("C-n", "C-n", "C-n", "C-n", "C-e")
	b.text(" mine")
	b.is("(buffer-modified-p)", "t")
	b.shell("sed -i s/one/ONE/ a.txt")
	b.says("a.txt: has changed on disk; your unsaved changes are kept")
	b.shell("sed -i s/two/TWO/ a.txt")
	b.pause(700)
	if says := b.eval(f.messages); strings.Count(says, "has changed on disk;") != 1 {
		t.Errorf("it says %s", says)
	}
	const text = `(replace-regexp-in-string "\n" "|" (string-trim-right (buffer-string)))`
	b.is(text, lines(strings.Replace(nine, "five", "five mine", 1)))
	b.mx("pollux-merge")
	b.is(`(with-current-buffer "a.txt <disk>" `+text+`)`, lines(strings.NewReplacer("one", "ONE", "two", "TWO").Replace(nine)))
	b.is(`(with-current-buffer "a.txt <began>" `+text+`)`, lines(nine))
	b.is("(length (window-list))", "4")
}

func emacsDiskGone(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt", "later.txt")
	a := b.connect()
	a.Context("a.txt", func(files []agentFile) bool { return strings.Contains(names(files), "a.txt") })
	b.shell("rm a.txt")
	b.says("a.txt: is gone from the disk; its buffer keeps the text")
	const text = `(list (with-current-buffer "a.txt" (string-trim-right (buffer-string))) (with-current-buffer "later.txt" (string-trim-right (buffer-string))) (active-minibuffer-window))`
	b.shell("echo back > a.txt; echo here > later.txt")
	b.is(text, "(back here nil)")
}

func emacsDiskSoon(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": hundred()})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	soon(t, b, "a.txt", func(text string) {
		b.is("(save-excursion (goto-char (point-min)) (buffer-substring-no-properties (point) (line-end-position)))", text)
	})
}
