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
	// jots types a new line below another without waiting for anything.
	jots(line int, text string)
	// visit opens a file in the same window.
	visit(file string)
	// save writes the file at hand by hand, saveAs gives it another name, close closes it.
	save()
	saveAs(file string)
	close()
	// noFiles are ways to what is no file of the user's, back leads to a file again, with nothing beside it.
	noFiles() []way
	back(file string)
	// leaving are the ways to end the editor with "mine" unsaved behind the one line of the file b.
	leaving() []leave
	// abandons ends the editor and saves nothing.
	abandons()
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
	// acceptAllOfFile accepts the proposal and all that come for its file; policy sets what becomes of files that fit a pattern.
	acceptAllOfFile()
	policy(decision, pattern string)
	// saveCopy writes the proposal into another file, which is there already or not.
	saveCopy(file string, there bool)
	// undone types a text and takes it back.
	undone(text string)
	// selectAll selects the text at hand, unselect ends that.
	selectAll()
	unselect()
	// focus sets when proposals are shown: "now" or "never".
	focus(when string)
	// savesItself has the editor save everything by itself all the time.
	savesItself()
	// busy is what a user may be amid, scenes are windows that they may have arranged.
	busy() []interruption
	scenes() []scene
	// run starts the CLI in a terminal of the editor's, with a first prompt; seekCLI goes there from a proposal; refuses is the key
	// that refuses there.
	run(prompt string)
	seekCLI()
	refuses() string
	// undoPast takes the latest change, of this file, back by the history.
	undoPast(file string)
	// keep and take decide a conflict.
	keep()
	take()
	// accepting and rejecting are the editor's ways to decide, the usual ones first.
	accepting() []way
	rejecting() []way

	// place is where the user is: "a.txt" in a file that is alone on the screen, "a.txt <proposal>" in a proposal with
	// its original beside it.
	place() string
	// process is the editor's PID, variable a variable of its environment, output what a shell of its says.
	process() string
	variable(name string) string
	output(command string) string
	// under is the letter under the cursor.
	under() string
	// inCLI is "1" while the user is in the CLI's terminal, and no proposal is on show.
	inCLI() string
	// alone is "1" while nothing of pollux's is on the screen.
	alone() string
	// kept is the text that is kept of a file's proposal which nobody waits for.
	kept(file string) string
	// language is that of the buffer at hand: "python".
	language() string
	// at is the line of the cursor; inSight is "1" when both sides of a diff show it.
	at() string
	inSight() string
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
	// questions are what the editor asks before it would write over what others have written, and the answer that does not.
	questions() map[string]string
	// everything is the text of all buffers.
	everything() string
	// hints are what the screen says beside a proposal: of a "conflict", or of "unsaved" changes.
	hints(of string) []string
}

// A way is one of several to do the same: its name, and what does it.
type way struct {
	name string
	do   func()
}

// A leave is a way to end the editor, and what the unsaved file holds then.
type leave struct {
	way
	leaves string
}

// An interruption is something that a user is amid: how it begins, an
// expression that is "1" as long as it lasts, how it goes on (or nil) and ends.
type interruption struct {
	name  string
	begin func()
	taken string
	more  func()
	end   func()
}

// A scene is an arrangement of windows of two files or more, and an expression for all that a diff must give back.
type scene struct {
	editor func(f flavour) flavour // with what the expression needs
	open   []string
	do     func(b *bench)
	state  string
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

// offer has the agent propose a text for a file, and waits until that is on show.
func (b *bench) offer(a *agent.Agent, file, text string) {
	b.Helper()
	a.OpenDiff(b.path(file), text)
	b.shows(file[strings.LastIndex(file, "/")+1:], text)
}

// calm waits until no proposal is on show, and the user is in a file again.
func (b *bench) calm(file string) { b.Helper(); b.is(b.place(), file) }

// hundred are lines to be somewhere in.
func hundred() string {
	var s strings.Builder
	for i := range 100 {
		s.WriteString("line " + itoa(i+1) + "\n")
	}
	return s.String()
}

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
	b.offer(a, "a.txt", proposed)
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
