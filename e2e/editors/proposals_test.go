package editors

import (
	"os"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
)

// TestProposals: what a user does with proposals (SPEC F-2 to F-8, F-11).
func TestProposals(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){
		"accept": accept, "edit": edit, "reject": reject, "exact": exact, "locale C": localeC, "big": big, "queue": queue, "taken back": takenBack,
		"unsaved": unsaved, "new file": newFile, "first change": firstChange, "copy": saveCopy, "gone": gone,
		"all of a file": acceptFile, "pattern": acceptPattern,
	})
}

// TestManners: a proposal takes nothing from its user, and nothing but a user's word decides it.
func TestManners(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"layout": layout, "autosave": autosave, "busy": busy, "now": now, "never": never})
}

// rejected waits for the outcome of a rejection.
func (b *bench) rejected(a *agent.Agent, file string) {
	b.Helper()
	if o := a.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != b.path(file) {
		b.Errorf("%+v, want %s rejected", o, file)
	}
}

// user opens files of a project, the last one on the screen, and connects a CLI.
func user(t *testing.T, f flavour, files map[string]string, open ...string) (*bench, *agent.Agent) {
	t.Helper()
	b := newBench(t, f, files)
	b.open(open...)
	return b, b.connect()
}

// F-2 … F-5, F-8: a proposal on show, accepted as it is.
func accept(t *testing.T, f flavour) {
	old := strings.ReplaceAll(sample, "\t", "") // which Neovim shows otherwise
	b, a := user(t, f, map[string]string{"a.go": old}, "a.go")
	b.sees(a, "a.go 1:1")
	proposed := "// new\n" + strings.ReplaceAll(old, "fourth", "4th")
	b.step("the proposal is shown")
	b.offer(a, "a.go", proposed)
	b.is(b.original("a.go"), lines(old))
	b.sees(a, "none")
	b.step("the user accepts")
	b.accept()
	b.accepted(a, "a.go", proposed)
	b.calm("a.go")
	b.sees(a, "a.go 1:1")
	if data, _ := os.ReadFile(b.path("a.go")); string(data) != old {
		t.Errorf("the plugin wrote the file: %q", data)
	}
	b.step("the CLI writes")
	b.write("a.go", proposed)
	b.is(b.buffer("a.go"), lines(proposed))
	b.step("the user undoes that")
	b.undo()
	b.is(b.buffer("a.go"), lines(old))
	if f.name != "emacs" { // whose undo says "Undo"
		b.says("that was the text before the file changed")
		b.redo()
		b.is(b.buffer("a.go"), lines(proposed))
		b.is(b.modified("a.go"), "0")
		b.undo()
		b.is(b.buffer("a.go"), lines(old))
	}
	b.step("the user undoes it for good, by the history")
	b.undoPast("a.go")
	b.says("a.go has its earlier text again")
	b.is(b.buffer("a.go"), lines(old))
	if data, _ := os.ReadFile(b.path("a.go")); string(data) != old {
		t.Errorf("undone, the file holds %q", data)
	}
	b.command("pollux.undo")
	b.says("there is nothing to undo")
	b.command("pollux.rules")
	b.says("you are asked about everything")
	a.Quiet()
}

// F-6, F-5: edited by hand, and accepted in every way.
func edit(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "one\ntwo\n"}, "a.go")
	for _, accept := range b.accepting() {
		b.step("the user edits, and accepts by %s", accept.name)
		b.offer(a, "a.go", "ONE\ntwo\n")
		b.types(1, " 😀")
		b.shows("a.go", "ONE 😀\ntwo\n")
		accept.do()
		b.accepted(a, "a.go", "ONE 😀\ntwo\n")
		b.calm("a.go")
	}
	a.Quiet()
}

// F-3: every way to say no, also after an edit.
func reject(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": sample}, "a.go")
	for i, reject := range b.rejecting() {
		b.step("the user rejects by %s", reject.name)
		b.offer(a, "a.go", "other\n")
		if i == 0 {
			b.types(1, "edited")
		}
		reject.do()
		b.rejected(a, "a.go")
		b.calm("a.go")
	}
	b.step("the user types and rejects at once")
	b.offer(a, "a.go", "other\n")
	b.jots(1, "in haste")
	b.reject()
	b.rejected(a, "a.go")
	b.until("it to be in the history", func() bool { return b.history("in haste") })
	a.Quiet()
}

// F-6: byte for byte in every shape, also when something was typed and taken back.
func exact(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.txt": "old\r\nlines\r\n"}, "a.txt")
	for i, text := range []string{
		"dos\r\nlines\r\n", "no end", "dos\r\nno end", "mixed\r\nlines\n", "\ufeffmarked\n", "mac\rlines\r", "\n", "\n\n\n", "tab\t nbsp\u00a0 e\u0301 👩‍👩‍👧 日本\n",
		"control \x01\x1b\x7f\n", "\r\n", "a\rb\r\n", "long " + strings.Repeat("x", 100_000) + "\n", strings.Repeat("line of many\n", 20_000), "",
	} {
		b.step("the user accepts %.40q", text)
		a.OpenDiff(b.path("a.txt"), text)
		b.is(b.place(), "a.txt <proposal>")
		if i%2 == 1 {
			b.undone("x")
		}
		b.accept()
		if o := a.Outcome(); o.Content != text || o.Method != "ide/diffAccepted" {
			t.Errorf("%.40q became %.40q (%d, %d bytes)", text, o.Content, len(text), len(o.Content))
		}
		b.calm("a.txt")
	}
}

// F-6 in the locale C, with a name that it does not have.
func localeC(t *testing.T, f flavour) {
	const name = "ünï 😀.go"
	b, a := user(t, inC(f), map[string]string{name: sample, "a": "a\n"}, "a")
	for i, text := range []string{"grüße 😀\r\ne\u0301 日本 \ufeff\r\n", "\ufeffä", sample + "ende ß\n", "\ufeff\u2028\U0010ffff\n"} {
		b.step("the user accepts %q", text)
		a.OpenDiff(b.path(name), text)
		b.is(b.alone(), "0")
		if i%2 == 0 {
			b.undone("x")
		}
		b.accept()
		b.accepted(a, name, text)
		b.calm("a")
	}
	b.step("the user edits")
	b.offer(a, "a", "grüße 😀\n")
	b.types(1, "and more")
	b.accept()
	b.accepted(a, "a", "grüße 😀and more\n")
	b.calm("a")
}

// F-6: 5 MB, with a change by hand in it.
func big(t *testing.T, f flavour) {
	line := "0123456789 abcdefghijklmnopqrstuvwxyz äöü 😀 0123456789 abcdefghijklmnopqrstuvwxyz\n"
	text := strings.Repeat(line, 5<<20/len(line))
	old := text
	if f.name == "emacs" { // whose own diff of two such texts takes longer than a proposal may wait on a busy machine
		old = "a\n"
	}
	b, a := user(t, f, map[string]string{"a.txt": old}, "a.txt")
	b.sees(a, "a.txt 1:1")
	proposed := strings.Replace(text, "0123", "XXXX", 1)
	a.OpenDiff(b.path("a.txt"), proposed)
	b.is(b.place(), "a.txt <proposal>")
	b.step("the user edits and accepts")
	b.adds("by hand")
	b.accept()
	if o := a.Outcome(); o.Content != proposed+"by hand\n" {
		t.Errorf("%d bytes became %d", len(proposed), len(o.Content))
	}
	b.calm("a.txt")
	b.step("the user selects everything")
	b.selectAll()
	a.Context("a selection", func(files []agentFile) bool { return strings.Contains(active(files), ` "`+old[:1]) })
}

// F-7: several wait, one is on show; F-11: accept all of this session.
func queue(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"}, "a")
	for _, name := range []string{"a", "b", "c", "d"} {
		a.OpenDiff(b.path(name), "new "+name+"\n")
	}
	b.step("the first one")
	b.shows("a", "new a\n")
	b.tm.Wait("change 1/1", patience)
	b.tm.Wait("1 of 4 waiting", patience)
	b.accept()
	b.accepted(a, "a", "new a\n")
	b.step("the second one")
	b.shows("b", "new b\n")
	b.reject()
	b.rejected(a, "b")
	b.step("all others")
	b.shows("c", "new c\n")
	b.command("pollux.accept-all")
	got := a.Outcome().Content + a.Outcome().Content
	if got != "new c\nnew d\n" && got != "new d\nnew c\n" {
		t.Errorf("%q", got)
	}
	b.calm("a")
	b.step("a later one, by the rule, without a view")
	a.OpenDiff(b.path("b"), "again\n")
	b.accepted(a, "b", "again\n")
	b.says("accepted by your rule")
	b.calm("a")
}

// F-4: the CLI takes it back with the text as edited, also one that waits in the queue.
func takenBack(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	a.OpenDiff(b.path("a"), "new a\n")
	a.OpenDiff(b.path("b"), "new b\n")
	b.shows("a", "new a\n")
	b.types(1, "edited")
	b.shows("a", "new aedited\n")
	if got := a.CloseDiff(b.path("b")); got != `{"finalContent":"new b\n"}` {
		t.Error(got)
	}
	if got := a.CloseDiff(b.path("a")); got != `{"content":"new aedited\n"}` {
		t.Error(got)
	}
	b.calm("a")
	a.Quiet()
}

// F-8: unsaved changes are announced where the decision is made, and kept.
func unsaved(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	b.types(1, " unsaved")
	b.is(b.buffer("a"), "a unsaved")
	b.is(b.modified("a"), "1")
	b.step("a proposal comes")
	b.offer(a, "a", "new\n")
	b.says("your unsaved changes of it are kept")
	b.tm.Wait(b.hints("unsaved")[0], patience) // as long as it is on show
	b.step("the user accepts, and the CLI writes")
	b.accept()
	b.accepted(a, "a", "new\n")
	b.calm("a")
	b.write("a", "new\n")
	b.says("your unsaved changes are kept")
	b.is(b.buffer("a"), "a unsaved")
	b.is(b.modified("a"), "1")
	b.step("the user writes into a file that is not there yet, and goes away")
	b.visit("later")
	b.calm("later")
	b.types(1, "mine")
	b.is(b.buffer("later"), "mine")
	b.visit("b")
	b.calm("b")
	b.step("the agent makes that file")
	b.offer(a, "later", "theirs\n")
	b.tm.Wait(b.hints("unsaved")[0], patience)
	b.accept()
	b.accepted(a, "later", "theirs\n")
	b.calm("b")
	b.write("later", "theirs\n")
	b.says("later: has changed on disk; your unsaved changes are kept")
	b.is(b.buffer("later"), "mine")
	b.is(b.modified("later"), "1")
	b.step("the user goes back and saves")
	b.calm("b") // and nothing was asked
	if data, _ := os.ReadFile(b.path("later")); string(data) != "theirs\n" {
		t.Errorf("later holds %q", data)
	}
}

// F-5: a file that is not there yet, in a folder that is not there, whatever its name is.
func newFile(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	for _, name := range []string{"dir/new file.py", "d/it's 100% [new] #1 $HOME.txt", "ünï 😀/*?.md"} {
		b.step("a proposal for %s", name)
		a.OpenDiff(b.path(name), "print('😀')\n")
		b.shows(name[strings.LastIndex(name, "/")+1:], "print('😀')\n")
		if strings.HasSuffix(name, ".py") {
			b.is(b.language(), "python")
		}
		b.adds("import os")
		b.accept()
		b.accepted(a, name, "print('😀')\nimport os\n")
		b.calm("a")
	}
}

// F-5: a diff opens at its first change, wherever that is, in sight on both sides.
func firstChange(t *testing.T, f flavour) {
	lines := func(from, to int) string {
		var s strings.Builder
		for i := from; i <= to; i++ {
			s.WriteString("line " + itoa(i) + "\n")
		}
		return s.String()
	}
	b, a := user(t, f, map[string]string{"a": lines(1, 300)}, "a")
	for what, tt := range map[string]struct{ proposed, want string }{
		"line 1":           {"one\n" + lines(2, 200) + "x\n" + lines(202, 300), "1"},
		"new first lines":  {"a\nb\n" + lines(1, 300), "1"},
		"no first lines":   {lines(3, 199) + "x\n" + lines(201, 300), "1"},
		"far below":        {lines(1, 199) + "x\n" + lines(201, 300), "200"},
		"added at the end": {lines(1, 300) + "x\n", "301"},
		"cut at the end":   {lines(1, 250), "250"},
		"all":              {"x\n", "1"},
		"nothing":          {"", "1"},
	} {
		b.step("the change is %s", what)
		a.OpenDiff(b.path("a"), tt.proposed)
		b.is(b.place(), "a <proposal>")
		b.is(b.at(), tt.want)
		b.is(b.inSight(), "1")
		b.reject()
		b.rejected(a, "a")
		b.calm("a")
	}
}

// A copy of a proposal in another file decides nothing.
func saveCopy(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "there": "mine\n"}, "a")
	a.OpenDiff(b.path("a"), "new\r\nlines\r\n")
	b.shows("a", "new\nlines\n")
	b.types(1, "er ü")
	for _, name := range []string{"copy", "there"} {
		b.step("the user writes a copy to %s", name)
		b.saveCopy(name, name == "there")
		b.until(name, func() bool { data, _ := os.ReadFile(b.path(name)); return string(data) == "newer ü\r\nlines\r\n" })
		b.shows("a", "newer ü\nlines\n")
	}
	a.Quiet()
	b.step("the user edits on and accepts")
	b.types(1, " still")
	b.accept()
	b.accepted(a, "a", "newer ü still\r\nlines\r\n")
	b.calm("a")
	if data, err := os.ReadFile(b.path("copy")); string(data) != "newer ü\r\nlines\r\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// The edits of a proposal whose CLI nobody can reach any more are kept.
func gone(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.offer(a, "a", "new\n")
	b.types(1, "er ü")
	b.shows("a", "newer ü\n")
	b.step("the companion and what it remembers are gone")
	b.forgetful()
	b.calm("a")
	b.says("nobody waits for this proposal any more; what you made of it is kept")
	b.is(b.kept("a"), "newer ü")
}

// F-11, for one file.
func acceptFile(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	b.offer(a, "a", "one\n")
	b.types(1, " edited")
	b.step("the user accepts this and all others for the file")
	b.acceptAllOfFile()
	b.accepted(a, "a", "one edited\n")
	b.calm("a")
	a.OpenDiff(b.path("a"), "two\n")
	b.accepted(a, "a", "two\n")
	b.step("another file is asked for")
	b.offer(a, "b", "new b\n")
	b.reject()
	b.rejected(a, "b")
	b.calm("a")
}

// F-11, for a pattern, and back; F-8: what is accepted without a diff is shown all the same.
func acceptPattern(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": "a\n", "b.txt": "b\n"}, "a.go")
	b.step("the user accepts what fits a pattern")
	b.policy("accept", b.project+"/*.go")
	for _, text := range []string{"new a\n", "newer, and longer\n"} {
		a.OpenDiff(b.path("a.go"), text)
		b.accepted(a, "a.go", text)
		b.calm("a.go")
		b.write("a.go", text)
		b.is(b.buffer("a.go"), lines(text))
	}
	b.step("what does not fit is asked for")
	b.offer(a, "b.txt", "new b\n")
	b.reject()
	b.rejected(a, "b.txt")
	b.calm("a.go")
	b.step("the user wants to be asked again")
	b.policy("ask", b.project+"/*.go")
	b.offer(a, "a.go", "newest\n")
}

// The user's windows, views, folds, registers, marks and jumps come back exactly, however the diff ends.
func layout(t *testing.T, f flavour) {
	old := "* one\ntext\n* two\nmore\nlines\n* three\nend\n"
	files := map[string]string{"a": strings.Repeat("some line\n", 120), "b": "b\n", "c": "c\n", "a.org": old, "b.el": strings.Repeat("(defun f ()\n  1)\n", 60)}
	for _, scene := range f.user(nil).scenes() {
		b, a := user(t, scene.editor(f), files, scene.open...)
		b.step("the user arranges windows")
		scene.do(b)
		b.pause(300)
		before := b.eval(scene.state)
		for i, decide := range append(b.accepting()[:2], b.rejecting()...) {
			b.step("the user decides by %s", decide.name)
			name := []string{scene.open[0], scene.open[1], "new"}[i%3]
			a.OpenDiff(b.path(name), "new\n")
			b.is(b.place(), name+" <proposal>")
			decide.do()
			a.Outcome()
			b.is(scene.state, before)
		}
	}
}

// Saving by itself never accepts, however it is done; saving by hand does.
func autosave(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.savesItself()
	b.offer(a, "a", "new\n")
	b.types(1, "edited")
	b.step("the editor saves what it likes")
	b.pause(2500)
	a.Quiet()
	b.is(b.place(), "a <proposal>")
	if got := b.eval(b.proposal("a")); !strings.HasPrefix(got, "newedited") { // whatever hooks add
		t.Errorf("%q", got)
	}
	b.step("the user saves")
	b.save()
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || !strings.HasPrefix(o.Content, "newedited\n") {
		t.Errorf("%+v", o)
	}
	b.calm("a")
	b.write("a", "what the CLI wrote\n")
	b.is(b.buffer("a"), "what the CLI wrote")
	b.is(b.modified("a"), "0")
}

// No focus is taken from somebody who types, or is amid anything else: the diff waits until that is done.
func busy(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	for _, amid := range b.busy() {
		b.step("the user is amid %s", amid.name)
		amid.begin()
		b.is(amid.taken, "1")
		a.OpenDiff(b.path("a"), "new\n")
		b.pause(500)
		b.is(b.alone(), "1")
		if amid.more != nil {
			amid.more()
			b.pause(400)
			b.is(b.alone(), "1")
		}
		b.is(amid.taken, "1")
		amid.end()
		b.shows("a", "new\n")
		b.reject()
		b.rejected(a, "a")
		b.calm("a")
	}
}

// The setting focus = now: at once, also while somebody types.
func now(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.focus("now")
	b.begin(1)
	b.text(" typi")
	b.is(b.buffer("a"), "a typi")
	b.offer(a, "a", "new\n")
	b.reject()
	b.rejected(a, "a")
	b.calm("a")
	b.is(b.buffer("a"), "a typi")
}

// The setting focus = never: only when the user asks for it.
func never(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	b.focus("never")
	a.OpenDiff(b.path("a"), "new\n")
	b.says("review shows it")
	b.pause(1500)
	b.calm("a")
	b.step("the user asks for it")
	b.command("pollux.review")
	b.shows("a", "new\n")
	b.accept()
	b.accepted(a, "a", "new\n")
	b.calm("a")
}
