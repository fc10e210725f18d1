package tui

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// decision returns the only decision made.
func (b *bench) decision() control.Decision {
	b.t.Helper()
	if len(b.f.decided) != 1 {
		b.t.Fatalf("%d decisions", len(b.f.decided))
	}
	return b.f.decided[0]
}

// SPEC F-6: accepting an unedited proposal writes it byte for byte.
func TestAccept(t *testing.T) {
	const proposed = "\ufeffone\r\ntwo\nthree"
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/a.txt", "one\r\n", proposed)
	b.sync()
	b.press("a")
	if d := b.decision(); !d.Accept || d.ID != "1" || *d.Content != proposed {
		t.Errorf("%+v %q", d, *d.Content)
	}
	b.end("1", "accepted")
	b.wants("accepted a.txt")
	b.wants("Nothing waits")
}

// Each hunk can be left out. The companion is told at once, and what is accepted is what is shown, with the
// proposal's line ends.
func TestHunks(t *testing.T) {
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/a.txt", "a\r\nb\r\nc\r\nd\r\n", "A\r\nb\r\nC\r\nd\r\n")
	b.sync()
	b.press("n", "x")
	if want := []string{"A\r\nb\r\nc\r\nd\r\n"}; !cmp.Equal(want, b.f.edits) {
		t.Errorf("edits %q", b.f.edits)
	}
	b.wants("hunk 2/2 reverted")
	b.wants("CRLF")
	b.press("x", "X")
	b.wants("hunk 2/2 reverted")
	b.press("X", "x", "a")
	if d := b.decision(); *d.Content != "A\r\nb\r\nc\r\nd\r\n" {
		t.Errorf("accepted %q", *d.Content)
	}
}

// A rejection that loses edits asks first.
func TestReject(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.press("x", "r")
	b.wants("lose your edits?")
	b.press("n")
	if len(b.f.decided) > 0 {
		t.Fatal("no means yes")
	}
	b.press("r", "q", "r", "y")
	if d := b.decision(); d.Accept || d.Content != nil {
		t.Errorf("%+v", d)
	}
	plain := newBench(t, 80, 24)
	example(plain)
	plain.press("r")
	if d := plain.decision(); d.Accept {
		t.Errorf("%+v", d)
	}
}

// SPEC F-8: before accepting, the reviewer points out unsaved changes in an editor's buffer.
func TestUnsaved(t *testing.T) {
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/a.txt", "a\n", "b\n").Unsaved = true
	b.sync()
	b.wants("unsaved in your editor")
	b.press("a")
	b.wants("has unsaved changes in your editor. Accept all the same?")
	b.press("y")
	b.decision()
}

// A diff that is decided elsewhere disappears with a notice, and its question with it.
func TestElsewhere(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.propose("2", "/w/proj/b.txt", "old\n", "new\n")
	b.sync()
	b.press("x", "r")
	b.end("1", "withdrawn")
	b.wants("src/main.go was withdrawn elsewhere")
	b.wants("b.txt")
	if b.m.dialog != nil {
		t.Error("the question stays")
	}
	// An edit made elsewhere is shown.
	b.f.now["2"] = "new, edited on the page\n"
	b.f.queue.Diffs[0].Version = 3
	b.f.queue.Diffs[0].Edited = true
	b.f.edits = append(b.f.edits, "", "") // the fake's version
	b.sync()
	b.wants("edited on the page")
	b.press("a")
	if d := b.decision(); *d.Content != "new, edited on the page\n" {
		t.Errorf("%q", *d.Content)
	}
}

// A key meant for the previous proposal does not decide the one that has just come up.
func TestStartled(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.propose("2", "/w/proj/b.txt", "old\n", "new\n")
	b.sync()
	b.end("1", "accepted")
	b.clock = b.clock.Add(-900 * time.Millisecond) // a tenth of a second after it appeared
	b.perform(b.m.press("a", "a"))
	if len(b.f.decided) > 0 {
		t.Fatal("a proposal that nobody saw is accepted")
	}
	b.wants("only just come up")
	b.press("a")
	b.decision()
	// A second press does not decide twice either.
	b.press("a", "r")
	b.decision()
}

// The reviewer says what cannot be done, and the proposal stays.
func TestRefused(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.f.fail = errors.New("an emptied proposal cannot be accepted")
	b.press("a")
	b.wants("an emptied proposal cannot be accepted")
	b.f.fail = nil
	b.press("a")
	b.decision()
}

// Successive edits arrive in order, one at a time, the last one last.
func TestOneEditAtATime(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	first := b.m.pressDiff("x") // it is on its way
	if first == nil {
		t.Fatal("nothing is sent")
	}
	b.m.hunk = 1
	if cmd := b.m.pressDiff("x"); cmd != nil {
		t.Error("a second edit is sent before the first has arrived")
	}
	b.f.queue.Diffs[0].Version = 1 // meanwhile, news of the first edit
	b.sync()
	b.perform(first)
	if len(b.f.edits) != 2 || b.f.edits[1] != b.m.docs["1"].change.text() {
		t.Errorf("%d edits", len(b.f.edits))
	}
	b.wants("hunk 2/3 reverted")
}

// SPEC F-11: rules for a session, a file, a pattern, everything; to accept or to leave to the terminal; and removing
// them.
func TestPolicy(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.press("A", "enter")
	b.press("A", "tab", "down", "enter")
	b.press("A", "down", "down", "e", "ctrl+u", "/", "w", "/", "*", "backspace", "x", "enter", "enter")
	b.press("A", "down", "down", "down", "enter")
	want := []review.Rule{
		{Mode: review.AcceptAll, Owner: "Gemini CLI #1"}, {Mode: review.Terminal, Pattern: "/w/proj/src/main.go"},
		{Mode: review.AcceptAll, Pattern: "/w/x"}, {Mode: review.AcceptAll},
	}
	if diff := cmp.Diff(want, b.f.rules); diff != "" {
		t.Error(diff)
	}
	b.f.queue.Rules = want[:1]
	b.sync()
	b.wants("1 rule in force")
	b.press("A", "down", "down", "down", "down", "enter")
	if got := b.f.rules[4]; got != (review.Rule{Mode: review.Ask, Owner: "Gemini CLI #1"}) {
		t.Errorf("removed: %+v", got)
	}
}

// SPEC F-11: a rule for one file covers that file only, even when its name looks like a pattern.
func TestPolicyOfOddFile(t *testing.T) {
	b := newBench(t, 80, 24)
	b.propose("1", "/w/proj/a*/b?.t*", "old\n", "new\n")
	b.sync()
	b.press("A", "down", "enter")
	b.press("A", "down", "down", "enter")
	want := []review.Rule{{Mode: review.AcceptAll, Pattern: "/w/proj/a[*]/b[?].t[*]"}, {Mode: review.AcceptAll, Pattern: "/w/proj/a[*]/**/*.t[*]"}}
	if diff := cmp.Diff(want, b.f.rules); diff != "" {
		t.Error(diff)
	}
}

// SPEC F-12: an accepted change can be viewed and undone, a rejected one not.
func TestHistory(t *testing.T) {
	b := newBench(t, 80, 24)
	history(b)
	b.wants(`+     name := "moon"`)
	b.press("u")
	b.wants("the text back that it had before?")
	b.press("n", "u", "y")
	if !cmp.Equal(b.f.undone, []string{"1"}) {
		t.Errorf("undone: %v", b.f.undone)
	}
	b.wants("src/main.go has its earlier text again")
	b.press("down")
	b.wants("+ lose")
	b.press("u")
	b.wants("nothing to undo")
	// A new entry appears by itself; the entry on screen stays.
	b.f.entries = append([]control.PastProposal{{ID: "9", Path: "/w/proj/fresh.txt", Owner: "Gemini CLI #1", At: b.clock, Outcome: "accepted"}}, b.f.entries...)
	b.f.queue.Past++
	b.sync()
	b.wants("fresh.txt")
	b.wants("▸ b.txt")
	b.press("up", "up", "esc")
	b.wants("Nothing waits")
}

// After the companion goes and returns, its new state counts.
func TestLost(t *testing.T) {
	b := newBench(t, 80, 24)
	example(b)
	b.press("x", "r")
	b.tell(lostMsg{errors.New("it is gone")})
	b.wants("it is gone")
	b.press("y", "a", "x", "A", "esc")
	if len(b.f.decided) > 0 {
		t.Error("decided without a companion")
	}
	b.tell(joinedMsg{b.f})
	b.sync()
	b.wants("src/main.go")
	b.tell(fatalMsg{control.ErrFromAgent})
	if !b.quit || b.m.fatal == nil {
		t.Error("a model's shell may stay")
	}
}

// A message of several lines is shown on several lines.
func TestProblemOfSeveralLines(t *testing.T) {
	b := newBench(t, 80, 24)
	b.tell(lostMsg{errors.New("no companion serves this folder; others run:\n  process 1 serves /a\n  process 2 serves /b")})
	b.wants("process 1 serves /a\n")
	b.wants("process 2 serves /b\n")
	if s := b.screen(); strings.Contains(s, "␊") {
		t.Error(s)
	}
}

// Fifty proposals: each can be reached, the list stays small, and each decision leads on to the next.
func TestFifty(t *testing.T) {
	b := newBench(t, 80, 24)
	for i := range 50 {
		b.propose(fmt.Sprint(i), fmt.Sprintf("/w/proj/f%02d.txt", i), "old\n", fmt.Sprintf("new %d\n", i))
	}
	b.sync()
	b.wants("50 wait")
	for i := range 50 {
		b.wants(fmt.Sprintf("▸ f%02d.txt", i))
		b.wants(fmt.Sprintf("+ new %d", i))
		b.press("tab")
	}
	b.wants("▸ f00.txt")
	b.press("shift+tab", "7")
	b.wants("▸ f06.txt")
	for i := 6; i < 50; i++ {
		b.press("a")
		if got := b.f.decided[len(b.f.decided)-1].ID; got != fmt.Sprint(i) {
			t.Fatalf("%s was accepted, not %d", got, i)
		}
		b.end(fmt.Sprint(i), "accepted")
	}
	b.wants("6 wait")
	b.wants("▸ f05.txt")
}

// A file of five megabytes with a hundred changes, and one of a single line: shown, taken apart, and returned whole.
func TestBig(t *testing.T) {
	b := newBench(t, 160, 50)
	lines := make([]string, 10_000)
	for i := range lines {
		lines[i] = fmt.Sprintf("%06d %s", i, strings.Repeat("x", 493))
	}
	old := strings.Join(lines, "\n")
	for i := 0; i < len(lines); i += 100 {
		lines[i] = "changed"
	}
	b.propose("1", "/w/proj/big.txt", old, strings.Join(lines, "\n"))
	b.sync()
	b.wants("+100 −100 · hunk 1/100")
	b.press("G", "g", "n", "x", "a")
	lines[100] = strings.Split(old, "\n")[100]
	if got := *b.decision().Content; got != strings.Join(lines, "\n") {
		t.Errorf("%d bytes are accepted, %d were meant", len(got), len(strings.Join(lines, "\n")))
	}
	one := newBench(t, 80, 24)
	long := strings.Repeat("é", 50_000)
	one.propose("1", "/w/proj/long.txt", long+" one end", long+" two end")
	one.sync()
	one.wants("two end")
	one.press("right", "0", "a")
	if got := *one.decision().Content; got != long+" two end" {
		t.Errorf("%d bytes are accepted", len(got))
	}
}

// With UntilDone it leaves when nothing waits.
func TestUntilDone(t *testing.T) {
	b := newBench(t, 80, 24)
	b.m.o.UntilDone = true
	example(b)
	if b.quit {
		t.Fatal("it leaves while something waits")
	}
	b.end("1", "accepted")
	if !b.quit {
		t.Error("it stays though nothing waits")
	}
}

// $EDITOR: the text goes out unchanged and comes back; a line end added at the end is no edit.
func TestEditor(t *testing.T) {
	for _, tt := range []struct{ proposed, left, want string }{
		{"new\n", "new and mine\n", "new and mine\n"},
		{"new", "mine\n", "mine"},
		{"a\r\nnew\r\n", "a\r\nmine\r\n", "a\r\nmine\r\n"},
		{"a\r\nnew\r\n", "a\nmine\n", "a\r\nmine\r\n"},
	} {
		b := newBench(t, 80, 24)
		b.propose("1", "/w/proj/a b'.go", "old\n", tt.proposed)
		b.sync()
		file, err := writePrivate("/w/proj/a b'.go", tt.proposed)
		if err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(filepath.Dir(file)); info.Mode().Perm() != 0o700 || filepath.Base(file) != "a b'.go" {
			t.Errorf("%s %v", file, info.Mode())
		}
		if err := os.WriteFile(file, []byte(tt.left), 0o600); err != nil {
			t.Fatal(err)
		}
		b.tell(editedMsg{id: "1", file: file, text: tt.proposed})
		if len(b.f.edits) != 1 || b.f.edits[0] != tt.want {
			t.Errorf("%q left as %q is sent as %q", tt.proposed, tt.left, b.f.edits)
		}
		if _, err := os.Stat(filepath.Dir(file)); err == nil {
			t.Error("the text stays behind on disk")
		}
		b.press("a")
		if d := b.decision(); *d.Content != tt.want {
			t.Errorf("accepted %q", *d.Content)
		}
	}
	b := newBench(t, 80, 24)
	example(b)
	for _, left := range []string{"\x00", "\xff"} {
		file, _ := writePrivate("x", left)
		b.tell(editedMsg{id: "1", file: file, text: "y"})
		b.wants("not text in UTF-8")
	}
	b.m.o.Editor = ""
	b.press("e")
	b.wants("set EDITOR")
}

func TestSafeName(t *testing.T) {
	for in, want := range map[string]string{
		"a.go": "a.go", "-rf": "rf", "+cmd": "cmd", "a\x1bb\n.c": "a_b_.c", "..": "text", "a:b?c": "a_b_c",
		strings.Repeat("x", 300) + ".go": "text.go",
	} {
		if got := safeName(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// SPEC GC-3: a proposal that its agent applies as is cannot be edited here, and the edit keys say why.
func TestReadOnlyGC3(t *testing.T) {
	b := newBench(t, 120, 24)
	b.propose("1", "/w/proj/src/main.go", exampleOld, exampleNew()).ReadOnly = "the agent takes no edits"
	b.sync()
	b.wants("read-only")
	if s := b.screen(); strings.Contains(s, "hunk  e") || strings.Contains(s, "e edit") || !strings.Contains(s, "a accept") {
		t.Errorf("the keys that edit are offered:\n%s", s)
	}
	b.f.queue.Diffs[0].Conflict = &control.Conflict{Reason: "the file has changed"}
	b.sync()
	if s := b.screen(); strings.Contains(s, "e edit") || !strings.Contains(s, "keep or take") {
		t.Errorf("the keys that edit are offered in a conflict:\n%s", s)
	}
	b.f.queue.Diffs[0].Conflict = nil
	b.sync()
	for _, key := range []string{"x", "X", "e"} {
		b.press(key)
		b.wants("the agent takes no edits")
		if len(b.f.edits) > 0 || b.m.docs["1"].change.text() != exampleNew() {
			t.Errorf("%s edits it", key)
		}
	}
}

// SPEC C-8: one key stops telling agents what the user looks at, and again resumes; the screen says which it will do.
func TestPauseC8(t *testing.T) {
	b := newBench(t, 120, 24)
	b.sync()
	b.wants("p pause sharing")
	b.press("p")
	b.wants("agents are told nothing of what you look at; p resumes")
	b.f.queue.Troubles = []control.Trouble{{ID: control.PausedTrouble, What: "sharing is paused"}}
	b.propose("1", "/w/proj/src/main.go", exampleOld, exampleNew())
	b.sync()
	b.wants("p resume sharing")
	b.press("p")
	b.wants("agents are told again what you look at")
	b.f.fail = errors.New("not from an agent's shell")
	b.press("p")
	b.wants("not from an agent's shell")
	if !slices.Equal(b.f.paused, []bool{true, false, false}) {
		t.Errorf("%v", b.f.paused)
	}
}
