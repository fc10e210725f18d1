package editors

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/pace"
)

// vimSuite is what Neovim and Vim have in common: the keys.
func vimSuite(t *testing.T, f flavour) {
	for name, test := range map[string]func(*testing.T, flavour){
		"discovery": vimDiscovery, "context": vimContext, "selection": vimSelection, "accept": vimAccept, "edited": vimEdited,
		"reject": vimReject, "exact": vimExact, "queue": vimQueue, "terminal side": vimCloseDiff, "unsaved": vimUnsaved,
		"layout": vimLayout, "companion dies": vimCompanionDies, "editor dies": vimEditorDies, "quit": vimQuit, "autosave": vimAutosave, "focus": vimFocus,
		"environment": vimEnvironment, "folders": vimFolders, "new file": vimNewFile, "first change": vimFirstChange, "commit": vimCommit, "half-written": vimHalfWritten,
	} {
		t.Run(name, func(t *testing.T) { test(t, f) })
	}
}

// vimLater starts a timer: those that were due before it have gone off when it does.
func vimLater(b *bench, ms int) string {
	b.eval("extend(g:, {'later': 0})")
	b.eval("timer_start(" + itoa(ms) + ", {-> extend(g:, {'later': 1})})")
	return "g:later"
}

const sample = "package a\n\n\thällo wörld 😀 x\nfourth line\nlast\n"

// D-2, D-3: the editor's own process and name, without any configuration.
func vimDiscovery(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	data, err := os.ReadFile(b.file())
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		WorkspacePath string
		IDEInfo       struct{ Name, DisplayName string }
	}
	if err := json.Unmarshal(data, &file); err != nil || file.WorkspacePath != b.project || file.IDEInfo.Name != f.name || file.IDEInfo.DisplayName != f.display {
		t.Errorf("%s, %v", data, err)
	}
	b.is("getpid()", strings.TrimSpace(b.eval("0+"+itoa(b.pid()))))
}

// C-1 … C-6: what is focused, exactly, and nothing stale.
func vimContext(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample, "b.txt": "b\n", ".git/COMMIT_EDITMSG": "m\n"})
	b.open("a.go")
	a := b.connect()
	b.sees(a, "a.go 1:1")
	b.text("3G$")
	b.sees(a, "a.go 3:17") // tab, 5 + 1 + 5 + 1 letters, the emoji is two units, a blank
	b.text("Fw")
	b.sees(a, "a.go 3:8")
	b.ex("split b.txt")
	b.sees(a, "b.txt 1:1")
	b.ex("help")
	b.sees(a, "none")
	b.ex("q")
	b.sees(a, "b.txt 1:1")
	b.ex("enew")
	b.sees(a, "none")
	b.ex("e .git/COMMIT_EDITMSG")
	b.sees(a, "none")
	b.ex("tabnew a.go")
	b.sees(a, "a.go 1:1")
	b.ex("saveas c.go")
	b.sees(a, "c.go 1:1")
	b.ex("cd " + b.root)
	b.ex("bwipeout!")
	for _, file := range a.Context("a context without c.go", func(files []agentFile) bool { return !strings.Contains(names(files), "c.go") }) {
		if strings.Contains(file.Path, "COMMIT") {
			t.Errorf("%+v", file)
		}
	}
}

// C-4, C-5: every kind of selection, gone when it is gone.
func vimSelection(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	a := b.connect()
	b.text("3G0wviw")
	b.sees(a, `a.go 3:6 "hällo"`)
	b.text("w") // extends to the next word's first letter
	b.sees(a, `a.go 3:8 "hällo w"`)
	b.escape()
	b.sees(a, `a.go 3:8 "hällo w"`) // until the cursor moves
	b.text("j")
	b.sees(a, "a.go 4:11")
	b.text("Vk")
	b.sees(a, `a.go 3:8 "\thällo wörld 😀 x\nfourth line\n"`)
	b.escape()
	b.text("4G0v$")
	b.sees(a, `a.go 4:12 "fourth line\n"`)
	b.escape()
	b.text("gg3Gf😀v")
	b.sees(a, `a.go 3:14 "😀"`)
	b.escape()
	b.text("4G0")
	b.keys("C-v")
	b.text("jl")
	b.sees(a, `a.go 5:2 "fo\nla"`)
	b.text("$")
	b.sees(a, `a.go 5:5 "fourth line\nlast"`)
	b.escape()
	b.text("dd0")
	b.sees(a, "a.go 4:1")
}

// F-2 … F-5, F-8: a proposal on show, accepted as it is.
func vimAccept(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	a := b.connect()
	b.sees(a, "a.go 1:1")
	proposed := strings.ReplaceAll(sample, "fourth", "4th")
	a.OpenDiff(b.path("a.go"), proposed)
	b.is("tabpagenr('$') . &diff . winnr('$')", "212")
	b.is("&syntax", "go")
	b.sees(a, "none")
	b.ex("w")
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != proposed || o.FilePath != b.path("a.go") {
		t.Errorf("%+v", o)
	}
	b.is("tabpagenr('$') . &diff", "10")
	b.sees(a, "a.go 1:1")
	if data, _ := os.ReadFile(b.path("a.go")); string(data) != sample {
		t.Errorf("the plugin wrote the file: %q", data)
	}
	b.write("a.go", proposed) // as the CLI does
	b.is("getline(4)", "4th line")
	b.text("u")
	b.is("getline(4)", "fourth line") // with its undo history
	a.Quiet()
}

// F-6, F-5: edited by hand and by diff commands.
func vimEdited(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"})
	b.open("a.go")
	a := b.connect()
	a.OpenDiff(b.path("a.go"), "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\n")
	b.is("&diff . getline(1)", "1ONE")
	b.text("ggdo") // that hunk as it was
	b.is("getline(1)", "one")
	b.text("Gohand 😀")
	b.escape()
	b.ex("wq")
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\nhand 😀\n" {
		t.Errorf("%+v", o)
	}
	b.is("tabpagenr('$')", "1")
	for _, keys := range []string{":Pollux accept\n", "ZZ", ":x\n"} {
		a.OpenDiff(b.path("a.go"), "ONE\n")
		b.is("&diff . getline(1)", "1ONE")
		b.text("Aedited")
		b.escape()
		b.text(keys)
		if o := a.Outcome(); o.Content != "ONEedited\n" {
			t.Errorf("%q: %+v", keys, o)
		}
		b.is("tabpagenr('$')", "1")
	}
}

// F-3: every way to say no, also after an edit.
func vimReject(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.open("a.go")
	a := b.connect()
	for _, keys := range []string{":q\n", ":Pollux reject\n", ":tabclose\n", "ZQ", ":q!\n", ":close\n", ":bwipeout!\n"} {
		a.OpenDiff(b.path("a.go"), "other\n")
		b.is("&diff . getline(1)", "1other")
		if keys == ":q\n" {
			b.text("Aedited")
			b.escape()
		}
		b.text(keys)
		if o := a.Outcome(); o.Method != "ide/diffRejected" {
			t.Errorf("%q: %+v", keys, o)
		}
		b.is("tabpagenr('$') . winnr('$') . expand('%:t') . len(getbufinfo())", "11a.go1")
	}
	a.Quiet()
}

// F-6: byte for byte in every shape.
func vimExact(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": "old\r\nlines\r\n"})
	b.open()
	a := b.connect()
	for _, text := range []string{
		"dos\r\nlines\r\n", "no end", "dos\r\nno end", "mixed\r\nlines\n", "\ufeffmarked\n", "mac\rlines\r", "\n", "\n\n\n", "tab\t nbsp\u00a0 e\u0301 👩‍👩‍👧 日本\n",
		"control \x01\x1b\x7f\n", "\r\n", "a\rb\r\n", "long " + strings.Repeat("x", 100_000) + "\n", strings.Repeat("line of many\n", 20_000),
	} {
		a.OpenDiff(b.path("a.txt"), text)
		b.is("&diff", "1")
		b.ex("w")
		if o := a.Outcome(); o.Content != text {
			t.Errorf("%.40q became %.40q (%d, %d bytes)", text, o.Content, len(text), len(o.Content))
		}
		b.is("tabpagenr('$')", "1")
	}
	a.OpenDiff(b.path("a.txt"), "dos\r\nlines\r\n")
	b.is("&diff . &ff", "1dos")
	b.text("onew")
	b.escape()
	b.ex("w")
	if o := a.Outcome(); o.Content != "dos\r\nnew\r\nlines\r\n" {
		t.Errorf("%q", o.Content)
	}
	b.is("tabpagenr('$')", "1")
	a.OpenDiff(b.path("a.txt"), "text\n")
	b.is("&diff", "1")
	b.text("dd")
	b.ex("w")
	b.says("emptied")
	b.text("u")
	b.is("getline(1)", "text")
	b.ex("w")
	if o := a.Outcome(); o.Content != "text\n" {
		t.Errorf("%q", o.Content)
	}
}

// F-7: several wait, one is on show; F-11: accept all of this session.
func vimQueue(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"})
	b.open("a")
	a := b.connect()
	for _, name := range []string{"a", "b", "c", "d"} {
		a.OpenDiff(b.path(name), "new "+name+"\n")
	}
	b.is("&diff . getline(1)", "1new a")
	b.is("tabpagenr('$')", "2")
	b.ex("w")
	if o := a.Outcome(); o.Content != "new a\n" {
		t.Errorf("%+v", o)
	}
	b.is("&diff . getline(1)", "1new b")
	b.ex("q")
	if o := a.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != b.path("b") {
		t.Errorf("%+v", o)
	}
	b.is("&diff . getline(1)", "1new c")
	b.ex("Pollux accept-all")
	got := a.Outcome().Content + a.Outcome().Content
	if got != "new c\nnew d\n" && got != "new d\nnew c\n" {
		t.Errorf("%q", got)
	}
	b.is("tabpagenr('$') . &diff", "10")
	a.OpenDiff(b.path("b"), "again\n") // by the rule, without a view
	if o := a.Outcome(); o.Content != "again\n" {
		t.Errorf("%+v", o)
	}
}

// F-4: the CLI takes it back with the text as edited, also one that waits in the queue.
func vimCloseDiff(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new a\n")
	a.OpenDiff(b.path("b"), "new b\n")
	b.is("&diff . getline(1)", "1new a")
	b.text("Aedited")
	b.escape()
	b.is("getline(1)", "new aedited")
	if got := a.CloseDiff(b.path("b")); got != `{"finalContent":"new b\n"}` {
		t.Error(got)
	}
	if got := a.CloseDiff(b.path("a")); got != `{"content":"new aedited\n"}` {
		t.Error(got)
	}
	b.is("tabpagenr('$') . &diff . expand('%')", "10a")
	a.Quiet()
}

// F-8: unsaved changes are announced and kept.
func vimUnsaved(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.text("ounsaved")
	b.escape()
	b.is("join(getline(1, '$'), '|') . &modified", "a|unsaved1")
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff . getline(1)", "1new")
	b.says("your unsaved changes of it are kept")
	b.tm.Wait("without your unsaved changes", patience) // below the proposal, as long as it is on show
	b.ex("w")
	if o := a.Outcome(); o.Content != "new\n" {
		t.Errorf("%+v", o)
	}
	b.is("tabpagenr('$')", "1")
	b.write("a", "new\n")
	b.says("your unsaved changes are kept")
	b.is("join(getline(1, '$'), '|') . &modified", "a|unsaved1")
}

// The user's windows come back exactly.
func vimLayout(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": strings.Repeat("line\n", 200), "b": "b\n"})
	b.open("a", "b")
	a := b.connect()
	b.ex("set hidden | split | vsplit | resize 7 | b 2 | wincmd p")
	b.text("100Gzt3lyl")
	b.ex("let g:before = winrestcmd() . string(winsaveview()) . expand('#') . winnr() . getreg('0') . mode()")
	b.is("exists('g:before')", "1")
	for _, decision := range []string{"w", "q"} {
		a.OpenDiff(b.path("b"), "new\n")
		b.is("&diff", "1")
		b.ex(decision)
		a.Outcome()
		b.is("tabpagenr('$') . &diff", "10")
		b.is("g:before ==# winrestcmd() . string(winsaveview()) . expand('#') . winnr() . getreg('0') . mode()", "1")
	}
}

// L-3: the companion is killed with an edited diff on show; it comes back on
// the same port, and the decision reaches the same session.
func vimCompanionDies(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff", "1")
	b.text("Aedited")
	b.escape()
	b.until("the journal", func() bool { return b.journal("new") })
	port, old := b.port(), b.stamp()
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
	if got := b.port(); got != port {
		t.Errorf("port %d became %d", port, got)
	}
	b.is("&diff . getline(1)", "1newedited")
	b.until("the restored diff", func() bool { return strings.Contains(b.ask("pollux.status"), `"filePath"`) })
	b.ex("w")
	b.is("tabpagenr('$')", "1")
	b.until("the outcome", func() bool { return b.history("newedited") })
	b.sees(b.connect(), "a 1:1") // it serves others too
}

// L-2: the editor is killed; the companion and its file are gone within a second.
func vimEditorDies(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff", "1")
	companion := b.companion()
	b.kill(b.pid(), syscall.SIGKILL)
	watch := pace.Start(t)
	b.until("the end of the companion", func() bool { return len(b.files()) == 0 && !alive(companion) })
	if took := watch.Took(); took > pace.Slack*time.Second {
		log, _ := os.ReadFile(b.root + "/s/pollux/pollux.log")
		t.Errorf("took %v\n%s", took, log)
	}
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
}

// L-1, F-3: leaving the editor rejects what is open, whatever else it writes;
// a pollux diff hears that nobody decided (SPEC §11.5: 3).
func vimQuit(t *testing.T, f flavour) {
	for _, leave := range []string{"qa!", "wqa", "xa"} {
		b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n"})
		b.open("b")
		a := b.connect()
		b.text("Amine")
		b.escape()
		b.is("getline(1)", "bmine")
		a.OpenDiff(b.path("a"), "new\n")
		b.is("&diff . getline(1)", "1new")
		b.text("Aedited")
		b.escape()
		asked := exec.Command(binary(), "diff", "a", "--from", os.DevNull)
		asked.Env, asked.Dir = b.env, b.project
		var said strings.Builder
		asked.Stderr = &said
		if err := asked.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = asked.Process.Kill() }()
		b.until("the second diff", func() bool { return strings.Contains(b.ask("pollux.status"), "pollux diff #1") })
		b.ex(leave)
		if err := asked.Wait(); asked.ProcessState.ExitCode() != 3 || !strings.Contains(said.String(), "has stopped before it answered") {
			t.Errorf("%s: pollux diff: %v: %s", leave, err, &said)
		}
		if o := a.Outcome(); o.Method != "ide/diffRejected" {
			t.Errorf("%s: %+v", leave, o)
		}
		b.until("the end", func() bool { return len(b.files()) == 0 })
		if code := b.tm.Exit(patience); code != 0 {
			t.Errorf("%s: exit code %d", leave, code)
		}
		written := map[string]string{"qa!": "b\n"}[leave]
		if written == "" {
			written = "bmine\n"
		}
		if data, err := os.ReadFile(b.path("b")); string(data) != written {
			t.Errorf("%s: b holds %q, %v", leave, data, err)
		}
	}
}

// Saving by itself never accepts.
func vimAutosave(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.ex("set autowriteall | autocmd TextChanged,TextChangedI,CursorHold * nested silent! wall")
	b.is("&autowriteall", "1")
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff", "1")
	b.text("Aedited")
	b.escape()
	b.text("jk")
	b.pause(500)
	a.Quiet()
	b.is("&diff . getline(1)", "1newedited")
	b.ex("q")
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
}

// No focus is taken from somebody who types.
func vimFocus(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.text("itypi")
	b.is("mode()", "i")
	a.OpenDiff(b.path("a"), "new\n")
	b.pause(400)
	b.is("tabpagenr('$')", "1")
	b.text("ng ")
	b.pause(400)
	b.is("getline(1) . mode() . tabpagenr('$')", "typing ai1")
	b.escape()
	b.is("&diff . getline(1) . mode()", "1newn")
}

// D-7: terminals of the editor's know their companion.
func vimEnvironment(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	b.is("$GEMINI_CLI_IDE_SERVER_PORT . ' ' . $GEMINI_CLI_IDE_PID . ' ' . $GEMINI_CLI_IDE_WORKSPACE_PATH . ' ' . (len($GEMINI_CLI_IDE_AUTH_TOKEN) > 40)",
		itoa(b.port())+" "+itoa(b.pid())+" "+b.project+" 1")
	b.is("split(system('echo $GEMINI_CLI_IDE_SERVER_PORT'), '\\n')[0]", itoa(b.port()))
}

// D-4: folders that come later.
func vimFolders(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "../q/.git/config": "", "../q/sub/x": "x\n"})
	b.open("a")
	b.ex("split ../q/sub/x")
	b.is("$GEMINI_CLI_IDE_WORKSPACE_PATH", b.project+":"+b.root+"/q")
	a := b.connect()
	b.sees(a, "x 1:1")
	b.ex("q")
	b.ex("lcd " + b.root + "/s")
	b.until("the folder", func() bool { return strings.Contains(b.eval("$GEMINI_CLI_IDE_WORKSPACE_PATH"), b.root+"/s") })
}

// F-5: a file that is not there yet.
func vimNewFile(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("dir/new file.py"), "print('😀')\n")
	b.is("&diff . &syntax", "1python")
	b.text("Goimport os")
	b.escape()
	b.ex("w")
	if o := a.Outcome(); o.Content != "print('😀')\nimport os\n" {
		t.Errorf("%+v", o)
	}
	b.is("&diff . tabpagenr('$')", "01")
	// Also one whose buffer is open already: it shows the text, and nobody is asked whether it may.
	b.ex("split later.txt | wincmd w")
	b.is("winnr('$') . &diff", "20")
	a.OpenDiff(b.path("later.txt"), "here\n")
	b.is("&diff . getline(1)", "1here")
	b.ex("w")
	a.Outcome()
	b.is("&diff . tabpagenr('$')", "01")
	b.write("later.txt", "here\n")
	b.is("join(getbufline('later.txt', 1, '$'), '|') . getbufvar('later.txt', '&modified')", "here0")
	b.ex("wincmd w | checktime")
	b.is("mode(1) . expand('%') . getline(1)", "nlater.txthere")
}

// F-5: a diff opens at its first change, wherever that is.
func vimFirstChange(t *testing.T, f flavour) {
	lines := func(from, to int) string {
		var s strings.Builder
		for i := from; i <= to; i++ {
			s.WriteString("line " + itoa(i) + "\n")
		}
		return s.String()
	}
	b := newBench(t, f, map[string]string{"a": lines(1, 300)})
	b.open("a")
	a := b.connect()
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
		a.OpenDiff(b.path("a"), tt.proposed)
		b.is("&diff . winnr()", "12")
		t.Log(what)
		b.is("line('.')", tt.want)
		if what == "no first lines" { // what is gone stands above, in sight
			b.is("winsaveview().topfill", "2")
		}
		b.is("line('w0') <= line('.') && line('.') <= line('w$')", "1")
		b.ex("q")
		a.Outcome()
		b.is("tabpagenr('$') . &diff", "10")
	}
}

// An editor for a commit message has no companion, and nothing to complain of.
func vimCommit(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{".git/COMMIT_EDITMSG": "m\n"})
	b.tm = terminal.Start(b, terminal.Options{Dir: b.project, Env: b.env, Args: f.start(t, b, []string{".git/COMMIT_EDITMSG"})})
	b.Cleanup(b.diagnose)
	b.is("expand('%:t') . mode(1)", "COMMIT_EDITMSGn")
	b.pause(500)
	b.is("mode(1)", "n")
	if says := b.eval(f.messages); strings.Contains(says, "Error") || strings.Contains(says, "E1") || len(b.files()) != 0 {
		t.Errorf("it says %s, and there are %v", says, b.files())
	}
	b.is(f.running, "stopped")
}

// A file that the CLI has emptied and not filled yet is not the last word; and
// what it writes is shown whatever 'autoread' is, which stays as it was.
func vimHalfWritten(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "one\ntwo\n"})
	b.open("a")
	a := b.connect()
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
	a.OpenDiff(b.path("a"), "1\n")
	b.is("&diff . getline(1)", "11")
	b.ex("w")
	a.Outcome()
	b.is("&diff . tabpagenr('$')", "01")
	b.write("a", "1\n")
	b.is("join(getline(1, '$'), '|') . &l:autoread", "10")
}
