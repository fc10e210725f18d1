package editors

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
)

// A driver is one editor's part of the stories: what its user does there, by
// its own keys, and what they see. Methods of the second half return an
// expression for bench.is, whose value is the same in every editor.
type driver interface {
	// begin goes to the end of a line, ready to type; done ends that. The text between them is typed by bench.text.
	begin(line int)
	done()
	// adds types a new last line.
	adds(text string)
	// visit opens a file in the same window.
	visit(file string)
	// save writes the file at hand by hand.
	save()
	undo()
	redo()
	// mark puts a mark at the line of the cursor.
	mark()
	// arrange puts a mark into line 75, folds lines 70 to 75 away, and has the cursor behind the third letter of line 60, the
	// first one in sight.
	arrange()
	// command types a command of pollux's by its name, as "pollux.accept".
	command(name string)
	accept()
	reject()
	// keep and take decide a conflict.
	keep()
	take()
	// accepting and rejecting are the editor's ways to decide, the usual ones first.
	accepting() []way
	rejecting() []way

	// place is where the user is: "a.txt" in a file that is alone on the screen, "a.txt <proposal>" in a proposal with
	// its original beside it.
	place() string
	// cursor is the cursor's line, its number and text up to the cursor: "5 five".
	cursor() string
	// marked is the line of the mark.
	marked() string
	// arranged is where things are that arrange made: cursor, column, first line, mark and fold, "60 3 60 75 70".
	arranged() string
	// typing is "1" while what the user types becomes text.
	typing() string
	// buffer is the text of a file's buffer, proposal and original the two sides of its diff, as lines writes them.
	buffer(file string) string
	proposal(file string) string
	original(file string) string
	// modified is "1" when a file's buffer has unsaved changes, else "0".
	modified(file string) string
	// conflicts are the lines of the proposal on show that are in conflict: "3 9".
	conflicts() string
	// merging is the text of a side of the merge on show: "disk", "began" or "mine".
	merging(side string) string
	// complaints are what the editor says by itself of files that others write.
	complaints() []string
	// hints are what the screen says beside a conflict.
	hints() []string
}

// A way is one of several to do the same: its name, and what does it.
type way struct {
	name string
	do   func()
}

// play tells every story on every editor, side by side.
func play(t *testing.T, stories map[string]func(*testing.T, flavour)) {
	t.Helper()
	playOn(t, append([]func(*testing.T) flavour{emacs}, vis...), stories)
}

// vis are Neovim and Vim.
var vis = []func(*testing.T) flavour{neovim, vim} //nolint:gochecknoglobals // constant

// playOn tells stories on some editors.
func playOn(t *testing.T, editors []func(*testing.T) flavour, stories map[string]func(*testing.T, flavour)) {
	t.Helper()
	t.Parallel()
	for _, editor := range editors {
		f := editor(t)
		for name, story := range stories {
			t.Run(f.display+"/"+name, func(t *testing.T) {
				t.Parallel()
				story(t, f)
			})
		}
	}
}

// step says what the user does or sees next. What fails until the next step names it.
func (b *bench) step(format string, args ...any) { b.now = fmt.Sprintf(format, args...) + ": " }

// Errorf, Fatalf and Fatal are those of testing.T with the step's name before them.
func (b *bench) Errorf(format string, args ...any) {
	b.Helper()
	b.T.Errorf("%s%s", b.now, fmt.Sprintf(format, args...))
}

func (b *bench) Fatalf(format string, args ...any) {
	b.Helper()
	b.T.Fatalf("%s%s", b.now, fmt.Sprintf(format, args...))
}

func (b *bench) Fatal(args ...any) { b.Helper(); b.T.Fatal(append([]any{b.now}, args...)...) }

// types types a text at the end of a line.
func (b *bench) types(line int, text string) {
	b.Helper()
	b.begin(line)
	b.text(text)
	b.done()
}

// shows waits until a file's proposal is on show, with this text.
func (b *bench) shows(file, text string) {
	b.Helper()
	b.is(b.place(), file+" <proposal>")
	b.is(b.proposal(file), lines(text))
}

// calm waits until no proposal is on show, and the user is in a file again.
func (b *bench) calm(file string) { b.Helper(); b.is(b.place(), file) }

// nine are lines with room between the first and the last.
const nine = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"

// proposed is what agents make of nine in these tests.
var proposed = strings.Replace(nine, "nine", "NINE", 1)

// proposing opens a.txt with nine lines and shows a proposal for it.
func proposing(t *testing.T, f flavour) (*bench, *agent.Agent) {
	t.Helper()
	b := newBench(t, f, map[string]string{"a.txt": nine})
	b.open("a.txt")
	a := b.connect()
	b.proposes(a)
	return b, a
}

// proposes has the agent propose its change of the nine lines, which the file has again.
func (b *bench) proposes(a *agent.Agent) {
	b.Helper()
	b.write("a.txt", nine)
	a.OpenDiff(b.path("a.txt"), proposed)
	b.shows("a.txt", proposed)
}

// accepted waits for the outcome of an acceptance, of this text, and until no proposal is on show.
func (b *bench) accepted(a *agent.Agent, file, text string) {
	b.Helper()
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != text || o.FilePath != b.path(file) {
		b.Errorf("%+v, want %q accepted for %s", o, text, file)
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

// lines is a text on one line, as the drivers show texts.
func lines(text string) string {
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "|")
}
