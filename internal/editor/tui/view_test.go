package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// sizes are the screen sizes of the golden files.
func sizes() map[string][2]int { return map[string][2]int{"80x24": {80, 24}, "160x50": {160, 50}} }

// trouble is what a companion reports when its disk is full.
var trouble = []control.Trouble{{
	ID: "journal", What: "open proposals are not safe from a crash: the journal in /s/resume/a.diffs cannot be written: no space left on device",
	Why: "if pollux is killed now, an open proposal may be lost", Do: "make room there, or make it writable; pollux tries again every two seconds",
}}

// The screens, at both sizes.
func TestScreens(t *testing.T) {
	for name, size := range sizes() {
		for what, show := range map[string]func(*bench){
			"empty": func(b *bench) { b.sync() },
			"diff":  func(b *bench) { example(b) },
			"hunk":  func(b *bench) { example(b); b.press("n", "x") },
			"all":   func(b *bench) { example(b); b.press("f") },
			"help":  func(b *bench) { example(b); b.press("?") },
			"policy": func(b *bench) {
				example(b)
				b.f.queue.Rules = []review.Rule{{Mode: review.AcceptAll, Pattern: "/w/proj/gen/**"}}
				b.sync()
				b.press("A", "down", "down", "e", "x")
			},
			"disk":     changedOnDisk,
			"conflict": inConflict,
			"standoff": func(b *bench) { inConflict(b); b.press("a") },
			"reject":   func(b *bench) { example(b); b.press("x", "r") },
			"hostile":  hostile,
			"history":  history,
			"queue": func(b *bench) {
				example(b)
				b.propose("2", "/w/proj/docs/readme.md", "", "# New\n\ntext without an end")
				b.propose("3", "/elsewhere/dos.txt", "one\r\ntwo\r\n", "one\r\n2\r\n").Unsaved = true
				b.sync()
				b.press("tab", "tab")
			},
			"trouble":     func(b *bench) { example(b); b.f.queue.Troubles = trouble; b.sync() },
			"idletrouble": func(b *bench) { b.f.queue.Troubles = trouble; b.sync() },
			"newfile":     func(b *bench) { b.propose("1", "/w/proj/docs/readme.md", "", "# New\n\ntext without an end"); b.sync() },
			"lost": func(b *bench) {
				example(b)
				b.tell(lostMsg{fmt.Errorf("no companion serves this folder (%q), and none runs; start one with: pollux serve", "/w/proj")})
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				b := newBench(t, size[0], size[1])
				show(b)
				b.golden(name + "/" + what)
			})
		}
	}
}

func changedOnDisk(b *bench) {
	example(b)
	b.rebase("1", strings.Replace(exampleOld, "three", "3", 1), strings.Replace(exampleNew(), "three", "3", 1), nil)
}

func inConflict(b *bench) {
	example(b)
	b.rebase("1", strings.Replace(exampleOld, "world", "sun", 1), exampleNew(), &control.Conflict{
		Reason: "the file has changed on disk where the proposal changes it", Places: []control.Place{{Start: 6, End: 7, Text: "\tname := \"sun\"\n"}},
	})
}

// The help shows when there is more, and its buttons work.
func TestHelpScrolls(t *testing.T) {
	b := newBench(t, 80, 12)
	example(b)
	b.press("?")
	b.wants("↓ more")
	x := strings.Index(strings.Split(b.screen(), "\n")[11], "↓")
	for range helpLines() {
		b.click(x, 11)
	}
	b.wants("The mouse scrolls")
	b.wants("↑ before")
	if strings.Contains(b.screen(), "↓ more") {
		t.Error("there is no more")
	}
	b.press("up")
	b.wants("↓ more")
}

func example(b *bench) {
	b.propose("1", "/w/proj/src/main.go", exampleOld, exampleNew())
	b.sync()
}

// An empty text has no line end to show.
func TestEmptyFile(t *testing.T) {
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/empty.txt", "", "")
	b.f.queue.Diffs[0].IsNew = true
	b.sync()
	if s := b.screen(); strings.Contains(s, "line end") || !strings.Contains(s, "the file is empty") {
		t.Error(s)
	}
}

// hostile is a proposal that attacks the terminal, the eye and the layout.
func hostile(b *bench) {
	old := "plain\n\tindented\n世界 wide\nend"
	b.propose("1", "/w/proj/\x1b]0;owned\x07evil\u202egnp.go", old, strings.Join([]string{
		"plain \x1b[2J\x1b[31mred", "\tif admin { // \u202e } \u2066", "世界 wide 👩\u200d👧 e\u0301 \u200bzero",
		strings.Repeat("long ", 60), "z" + strings.Repeat("\u0310", 30) + "algo", "bell\x07 and \u009b31m", "end\n",
	}, "\n"))
	b.f.queue.Diffs[0].Owner = "Gemini\x1b[5m CLI"
	b.sync()
}

func history(b *bench) {
	at := b.clock.Add(-time.Hour)
	b.f.entries = []control.PastProposal{
		{ID: "1", Path: "/w/proj/src/main.go", Owner: "Gemini CLI #1", At: at, Outcome: "accepted", Edited: true, Undoable: true},
		{ID: "2", Path: "/w/proj/b.txt", Owner: "pollux diff #2", At: at.Add(-48 * time.Hour), Outcome: "rejected"},
		{ID: "3", Path: "/w/proj/c.txt", Owner: "Gemini CLI #1", At: at.Add(-72 * time.Hour), Outcome: "accepted", Policy: true, Undoable: true},
	}
	b.f.texts["1"] = control.Texts{Old: exampleOld, New: "x", Final: exampleNew()}
	b.f.texts["2"] = control.Texts{Old: "keep\n", New: "lose\n"}
	b.sync()
	b.press("h")
}

// Any size can be drawn, nothing is drawn outside it, and no terminal code from a peer gets through.
func TestEverySize(t *testing.T) {
	for w := 1; w <= 200; w += 7 {
		for _, h := range []int{1, 2, 3, 4, 5, 8, 24, 60} {
			for what, show := range map[string]func(*bench){
				"diff": example, "hostile": hostile, "history": history, "empty": func(b *bench) { b.sync() },
				"policy": func(b *bench) { example(b); b.press("A") }, "help": func(b *bench) { example(b); b.press("?") },
			} {
				b := newBench(t, w, h)
				show(b)
				if s := b.screen(); strings.ContainsAny(s, "\x1b\x07\u202e\u009b") {
					t.Fatalf("%s at %d×%d: a code gets through: %q", what, w, h, s)
				}
				b.press("G", "right", "right")
				b.screen()
			}
		}
	}
}

// Resizing keeps the current hunk in view.
func TestResize(t *testing.T) {
	b := newBench(t, 160, 50)
	example(b)
	b.press("n", "n")
	b.tell(tea.WindowSizeMsg{Width: 80, Height: 12})
	b.wants(`"the end"`)
	b.tell(tea.WindowSizeMsg{Width: 160, Height: 50})
	b.wants("│")
}

// NO_COLOR: only attributes are sent, and changed words can still be told apart.
func TestNoColor(t *testing.T) {
	for _, none := range []bool{false, true} {
		b := newBench(t, 80, 24)
		b.m.o.NoColor = none
		b.tell(tea.BackgroundColorMsg{})
		example(b)
		s := b.m.frame().String()
		if got := strings.Contains(s, ";2;") || strings.Contains(s, "38;") || strings.Contains(s, "48;"); got == none {
			t.Errorf("NO_COLOR %v: colours %v", none, got)
		}
		if none && !strings.Contains(s, "\x1b[4;1m") && !strings.Contains(s, "\x1b[1;4m") {
			t.Errorf("changed words are not marked: %q", s)
		}
	}
}

// The last row shows what each key does, and a click there does the same; the wheel scrolls.
func TestMouse(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.propose("2", "/w/proj/b.txt", "old\n", "new\n")
	b.sync()
	b.click(5, 2) // the second of the list
	if b.m.current != "2" {
		t.Errorf("a click on a proposal does not choose it: %s", b.m.current)
	}
	b.click(5, 1)
	b.press("n", "n")
	found := false
	for y, row := range strings.Split(b.screen(), "\n") {
		if strings.Contains(row, "the end") {
			found = true
			b.click(20, y)
			if b.m.hunk != 2 {
				t.Errorf("a click into hunk 3 chooses %d", b.m.hunk+1)
			}
			b.click(0, y)
		}
	}
	if len(b.f.edits) != 1 || !found {
		t.Errorf("a click on the bar before a hunk does not take it out: %d edits", len(b.f.edits))
	}
	b.press("g")
	b.tell(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if b.m.top == 0 {
		t.Error("the wheel does not scroll")
	}
	keys := strings.Split(b.screen(), "\n")[23]
	b.click(strings.Index(keys, "accept"), 23)
	if len(b.f.decided) != 1 || !b.f.decided[0].Accept {
		t.Errorf("a click on accept: %+v", b.f.decided)
	}
}
