package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// vimMore is what Neovim and Vim have in common beyond a first look: windows,
// folders and files in every state, settings and commands.
func vimMore(t *testing.T, f flavour) {
	for name, test := range map[string]func(*testing.T, flavour){
		"tabs": vimTabs, "browsers": vimBrowsers, "outside": vimOutside, "blocks": vimBlocks, "working folders": vimWorkingFolders,
		"everything comes back": vimComesBack, "focus now": vimFocusNow, "focus never": vimFocusNever, "policies": vimPolicies,
		"commands": vimCommands, "cli": vimCLI, "haste": vimHaste, "keys and colours": vimKeys, "big": vimBig, "invalid": vimInvalid, "busy": vimBusy,
		"save settings": vimSaveSettings, "long words": vimLongWords, "hangup": vimHangup, "editor again": vimEditorAgain, "new": vimOpenDocument, "question": vimQuestion,
		"open": vimOpenPlace, "no tab page": vimNoTab, "no room": vimNoRoom,
	} {
		t.Run(name, func(t *testing.T) { test(t, f) })
	}
}

func TestVimMore(t *testing.T) {
	t.Parallel()
	vimMore(t, vim(t))
}

// setting gives one of the plugin's another value.
func (b *bench) setting(name, value string) {
	b.Helper()
	b.ex("let g:pollux = extend(copy(g:pollux), {'" + name + "': " + value + "})")
	b.is("string(g:pollux."+name+")", strings.TrimSpace(b.eval("string("+value+")")))
}

// C-2: the focus follows the user through windows and tab pages, and what lies
// in the others stays open.
func vimTabs(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"})
	b.open("a")
	a := b.connect()
	b.sees(a, "a 1:1")
	b.ex("vsplit b")
	b.sees(a, "b 1:1")
	b.ex("tabedit c")
	b.sees(a, "c 1:1")
	b.text("gt")
	b.sees(a, "b 1:1")
	b.keys("C-w", "w")
	b.sees(a, "a 1:1")
	b.ex("copen")
	b.sees(a, "none")
	b.ex("cclose")
	b.sees(a, "a 1:1")
	b.ex("pedit b | wincmd P")
	b.is("&previewwindow", "1")
	b.sees(a, "none")
	b.ex("pclose")
	b.sees(a, "a 1:1")
	b.ex("tabnext | bdelete c")
	a.Context("no c", func(files []agentFile) bool { return len(files) == 2 && !strings.Contains(names(files), b.path("c")) })
}

// C-6: what shows folders, repositories or other machines is no file of the user's.
func vimBrowsers(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "sub/x": "x\n"})
	b.open("a")
	a := b.connect()
	b.sees(a, "a 1:1")
	b.ex("set hidden")
	for _, command := range []string{
		"edit .",                      // netrw
		"edit " + b.path("sub") + "/", // dirvish has such names
		"enew | silent file oil://" + b.path("sub") + "/",
		"enew | silent file fugitive://" + b.path(".git") + "//0/a",
		"enew | silent file term://x",
		"enew | setlocal buftype=nofile | silent file " + b.path("sub/x"),
		"edit " + b.path("none"),
		"terminal",
	} {
		b.ex("silent! split | " + command)
		b.sees(a, "none")
		b.keys("C-\\", "C-n")
		b.ex("b! 1 | only!")
		b.sees(a, "a 1:1")
		for _, file := range a.Context("a", func([]agentFile) bool { return true }) {
			if file.Path != b.path("a") {
				t.Errorf("after %q: %s", command, file.Path)
			}
		}
	}
}

// C-2: files that others remove or rename are open no more.
func vimOutside(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"})
	b.open("a", "b", "c")
	a := b.connect()
	b.ex("set hidden | b b | b c | b a")
	a.Context("all", func(files []agentFile) bool { return len(files) == 3 })
	if err := os.Remove(b.path("b")); err != nil {
		t.Fatal(err)
	}
	a.Context("a and c", func(files []agentFile) bool { return len(files) == 2 && !strings.Contains(names(files), b.path("b")) })
	if err := os.Rename(b.path("c"), b.path("d")); err != nil {
		t.Fatal(err)
	}
	a.Context("a alone", func(files []agentFile) bool { return len(files) == 1 })
	b.write("b", "b again\n")
	b.ex("b b")
	b.sees(a, "b 1:1")
}

// C-4: blocks in every direction, over tabs and wide characters; other ways to select.
func vimBlocks(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "\tone\n日本語 x\nplain text\n"})
	b.open("a")
	a := b.connect()
	b.sees(a, "a 1:2")
	b.text("2G0l") // 本: columns 3 and 4
	b.keys("C-v")
	b.text("jlll") // to column 6: 語 above, "in " below
	b.sees(a, `a 3:6 "本語\nain "`)
	b.text("O")
	b.sees(a, `a 3:3 "本語\nain "`)
	b.escape()
	b.text("3G0")
	b.keys("C-v")
	b.text("kk") // upwards: the tab covers what is below it
	b.sees(a, `a 1:1 "\t\n日本語 x\nplain te"`)
	b.escape()
	b.ex("set selection=exclusive")
	b.text("3G0v3l")
	b.sees(a, `a 3:4 "pla"`)
	b.escape()
	b.ex("set selection=inclusive")
	b.text("3G02lvh")
	b.sees(a, `a 3:2 "la"`) // backwards
	b.escape()
	b.text("j0gv")
	b.sees(a, `a 3:2 "la"`)
	b.escape()
	b.text("gg0gh")
	b.keys("S-Right")
	b.sees(a, `a 1:2 "\to"`) // select mode
	b.keys("Escape")
}

// D-4: folders by :cd, :tcd and :lcd.
func vimWorkingFolders(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "../q/.git/config": "", "../q/sub/x": "x\n", "../r2/x": "x\n", "../r3/x": "x\n"})
	b.open("a")
	roots := func(want ...string) {
		t.Helper()
		b.until(strings.Join(want, " "), func() bool {
			got := b.eval("$GEMINI_CLI_IDE_WORKSPACE_PATH")
			for _, root := range want {
				if !strings.Contains(":"+got+":", ":"+root+":") {
					return false
				}
			}
			return strings.Count(got, ":") == len(want)-1
		})
	}
	roots(b.project)
	b.ex("tabnew | tcd " + b.root + "/q/sub")
	roots(b.project, b.root+"/q")
	b.ex("split | lcd " + b.root + "/r2")
	roots(b.project, b.root+"/q", b.root+"/r2")
	b.ex("q")
	roots(b.project, b.root+"/q")
	b.ex("tabclose")
	roots(b.project)
	b.ex("cd " + b.root + "/r3")
	roots(b.root + "/r3")
	data, err := os.ReadFile(b.file())
	if err != nil || !strings.Contains(string(data), `"workspacePath":"`+b.root+`/r3"`) {
		t.Errorf("%s, %v", data, err)
	}
}

// state is all that a diff must give back.
const state = `winrestcmd() . string(winsaveview()) . string(map(range(1, winnr('$')), 'winbufnr(v:val)')) . expand('%') . expand('#') . winnr() . winnr('#') . tabpagenr() . tabpagenr('#')` +
	` . getreg('"') . getreg('0') . getreg('-') . getreg('.') . getreg('/') . mode() . string(map(range(1, line('$')), 'foldclosed(v:val)')) . string(getpos("'a")) . string(getpos("'<")) . string(getpos("'\x27"))` +
	` . string(getjumplist()[1]) . &lazyredraw . &eventignore . &splitright . &equalalways . b:changedtick . &modified . getcwd() . v:hlsearch . string(getqflist()) . &cmdheight . &foldmethod . &wrap . &scrollbind . &cursorbind . &diff . &foldcolumn`

// The user's windows, folds, registers, marks and jumps come back exactly.
func vimComesBack(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": strings.Repeat("some line\n", 120), "b": "b\n", "c": "c\n"})
	b.open("a", "b", "c")
	a := b.connect()
	b.ex("tabnew c | tabprevious | set hidden foldmethod=manual | 20,40fold | 60,70fold | vsplit | split b | resize 5 | vertical resize 30 | wincmd p | wincmd p | wincmd t | wincmd w")
	b.ex("50 | mark a | normal! ztyiw | normal! 5lx")
	b.text("/line\r")
	b.text("100Gmzvj")
	b.escape()
	b.text("u")
	b.ex("let g:before = " + state)
	b.is("exists('g:before')", "1")
	for _, decision := range []string{"w", "q", "Pollux accept", "tabclose"} {
		name := map[string]string{"w": "a", "q": "b"}[decision]
		if name == "" {
			name = "new"
		}
		a.OpenDiff(b.path(name), "new\n")
		b.is("&diff . getline(1)", "1new")
		b.ex(decision)
		a.Outcome()
		b.is("tabpagenr('$') . &diff", "20")
		before, after := b.eval("g:before"), ""
		for end := time.Now().Add(patience); after != before; after = b.eval(state) {
			if time.Now().After(end) {
				t.Fatalf("%s:\n%s\nbecame\n%s", decision, before, after)
			}
		}
	}
}

// The setting focus = now: at once, also while somebody types.
func vimFocusNow(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.setting("focus", "'now'")
	b.text("itypi")
	b.is("mode()", "i")
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff . getline(1) . mode()", "1newn")
	b.ex("q")
	a.Outcome()
	b.is("getline(1) . tabpagenr('$')", "typia1")
}

// The setting focus = never: only when the user asks for it.
func vimFocusNever(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.setting("focus", "'never'")
	a.OpenDiff(b.path("a"), "new\n")
	b.says("waits, :Pollux review shows it")
	b.pause(500)
	b.is("tabpagenr('$') . &diff", "10")
	a.OpenDiff(b.path("b"), "two\n")
	b.ex("Pollux status")
	b.says("diff 1     a – Gemini CLI #1")
	b.says("diff 2     b – Gemini CLI #1")
	b.ex("Pollux review 2")
	b.is("&diff . getline(1)", "1two")
	b.ex("Pollux review next")
	b.is("&diff . getline(1)", "1new")
	b.ex("w")
	if o := a.Outcome(); o.Content != "new\n" {
		t.Errorf("%+v", o)
	}
	b.is("tabpagenr('$') . &diff . getline(1)", "21two")
	b.ex("tabfirst")
	b.is("tabpagenr() . &diff", "10")
	b.ex("Pollux reject") // the other one, wherever the focus is
	if o := a.Outcome(); o.Method != "ide/diffRejected" {
		t.Errorf("%+v", o)
	}
	b.is("tabpagenr('$') . &diff", "10")
	b.ex("Pollux review next")
	b.says("no other diff waits")
}

// F-11: for one file, for a pattern, to the terminal, and back.
func vimPolicies(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n", "d/x.go": "x\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new a\n")
	b.is("&diff . getline(1)", "1new a")
	b.ex("Pollux accept-all file")
	if o := a.Outcome(); o.Content != "new a\n" {
		t.Errorf("%+v", o)
	}
	b.is("tabpagenr('$') . &diff", "10")
	a.OpenDiff(b.path("a"), "again\n")
	if o := a.Outcome(); o.Content != "again\n" {
		t.Errorf("%+v", o)
	}
	a.OpenDiff(b.path("b"), "new b\n") // another file is asked for
	b.is("&diff . getline(1)", "1new b")
	b.ex("q")
	a.Outcome()
	b.is("tabpagenr('$') . &diff", "10")
	b.ex("Pollux policy accept pattern " + b.project + "/d/*.go")
	b.says("2 rules")
	a.OpenDiff(b.path("d/x.go"), "new x\n")
	if o := a.Outcome(); o.Content != "new x\n" {
		t.Errorf("%+v", o)
	}
	b.ex("Pollux policy terminal pattern " + b.project + "/b")
	b.says("3 rules")
	a.Refused(b.path("b"), "x\n")
	b.ex("Pollux policy bogus session")
	b.says("bogus")
	b.ex("Pollux policy")
	b.says("terminal  " + b.project + "/b")
	b.says("accept    " + b.project + "/d/*.go")
	b.says(":Pollux policy ask|accept|terminal [session|file|pattern GLOB]")
}

// Mappings and highlights are the user's to change.
func vimKeys(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.setting("mappings", "{'accept': 'ga', 'reject': 'gr', 'accept_all': 'gA'}")
	b.ex("highlight PolluxLabel ctermfg=1")
	for keys, want := range map[string]string{"ga": "ide/diffAccepted", "gr": "ide/diffRejected"} {
		a.OpenDiff(b.path("a"), "new\n")
		b.is("&diff . getline(1)", "1new")
		b.is("maparg('ZZ', 'n')", "")
		b.is("stridx(&l:statusline, '%#PolluxLabel#')", "0")
		b.is("synIDattr(hlID('PolluxLabel'), 'fg', 'cterm')", "1")
		b.text(keys)
		if o := a.Outcome(); o.Method != want {
			t.Errorf("%s: %+v", keys, o)
		}
		b.is("tabpagenr('$')", "1")
	}
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff . getline(1)", "1new")
	b.text("gA")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	a.OpenDiff(b.path("a"), "more\n")
	if o := a.Outcome(); o.Content != "more\n" {
		t.Errorf("%+v", o)
	}
}

// F-6: 5 MB, with a change by hand in it.
func vimBig(t *testing.T, f flavour) {
	line := "0123456789 abcdefghijklmnopqrstuvwxyz äöü 😀 0123456789 abcdefghijklmnopqrstuvwxyz\n"
	text := strings.Repeat(line, 5<<20/len(line))
	b := newBench(t, f, map[string]string{"a.txt": text})
	b.open("a.txt")
	a := b.connect()
	b.sees(a, "a.txt 1:1")
	proposed := strings.Replace(text, "0123", "XXXX", 1)
	a.OpenDiff(b.path("a.txt"), proposed)
	b.is("&diff . getline(1)[:3]", "1XXXX")
	b.text("Goby hand")
	b.escape()
	b.ex("w")
	if o := a.Outcome(); o.Content != proposed+"by hand\n" {
		t.Errorf("%d bytes became %d", len(proposed), len(o.Content))
	}
	b.is("tabpagenr('$')", "1")
	b.text("ggVG")
	b.is("mode()", "V")
	a.Context("a selection", func(files []agentFile) bool { return strings.Contains(active(files), "abcdef") })
}

// What is no UTF-8 cannot be accepted: the diff stays, and says so.
func vimInvalid(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff . getline(1)", "1new")
	b.text("A")
	b.keys("C-v")
	b.text("xff")
	b.escape()
	b.ex(`call setline(2, "bad \xff byte")`)
	b.is("line('$')", "2")
	b.ex("w")
	b.says("not UTF-8")
	b.is("&diff . tabpagenr('$')", "12")
	if got := a.CloseDiff(b.path("a")); strings.Contains(got, "bad") {
		t.Error(got)
	}
	b.is("&diff . tabpagenr('$')", "01")
}

// A diff waits while Vim is in its command-line window, at a question, in an
// operator or a recording, or before the command that a count or a register is for.
func vimBusy(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.text("q:")
	b.is("getcmdwintype()", ":")
	a.OpenDiff(b.path("a"), "new\n")
	b.pause(400)
	b.is("getcmdwintype() . tabpagenr('$')", ":1")
	b.ex("q")
	b.is("&diff . getline(1)", "1new")
	b.ex("w")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	b.text(":echo 'half")
	b.is("mode()", "c")
	a.OpenDiff(b.path("a"), "newer\n")
	b.pause(400)
	b.is("mode() . tabpagenr('$')", "c1")
	b.text("'\r")
	b.is("&diff . getline(1)", "1newer")
	b.ex("q")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	begun := map[string]string{"qa": "q", "d": "Escape"}
	if f.name == "vim" { // a Neovim that waits for more takes no proposal
		begun["3"], begun["\"a"], begun["f"] = "Escape", "Escape", "Escape"
	}
	for keys, end := range begun {
		b.text(keys)
		b.is(amid(keys), "1")
		a.OpenDiff(b.path("a"), "newest\n")
		b.pause(400)
		b.is("tabpagenr('$')", "1")
		b.keys(end)
		b.is("&diff . getline(1)", "1newest")
		b.ex("q")
		a.Outcome()
		b.is("tabpagenr('$')", "1")
	}
}

// amid is an expression that says whether the keys have been taken for the beginning of a command.
func amid(keys string) string {
	switch keys {
	case "qa":
		return "reg_recording() ==# 'a'"
	case "d":
		return "mode(1) ==# 'no'"
	}
	return "stridx(state(), 'S') >= 0"
}

// Under every setting of saving the user's own unsaved text stays, and only :w by hand accepts.
func vimSaveSettings(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n"})
	b.open("a", "b")
	a := b.connect()
	for _, settings := range []string{"hidden noautowrite", "nohidden noautowrite", "nohidden autowrite", "hidden autowriteall backup writebackup confirm"} {
		b.ex("set " + settings)
		b.text("ggccunsaved")
		b.escape()
		b.is("getline(1) . &modified", "unsaved1")
		a.OpenDiff(b.path("b"), "new\n")
		b.is("&diff . getline(1)", "1new")
		b.text("Ax")
		b.escape()
		b.ex("w")
		if o := a.Outcome(); o.Content != "newx\n" {
			t.Errorf("%s: %+v", settings, o)
		}
		b.is("tabpagenr('$') . expand('%')", "1a")
		if data, _ := os.ReadFile(b.path("b")); string(data) != "b\n" {
			t.Errorf("%s wrote %q", settings, data)
		}
		b.is("getline(1)", "unsaved")
		b.ex("edit! | set hidden& autowrite& autowriteall& backup& confirm&")
		b.is("&modified", "0")
		b.write("a", "a\n")
		b.ex("edit!")
		b.is("getline(1)", "a")
	}
}

// L-2: a terminal that goes away while the editor is leaving leaves no process behind.
func vimHangup(t *testing.T, f flavour) {
	for _, leaving := range []string{"", ":qa!\n"} {
		b := newBench(t, f, map[string]string{"a": "a\n"})
		b.open("a")
		a := b.connect()
		a.OpenDiff(b.path("a"), "new\n")
		b.is("&diff", "1")
		pid, companion := b.pid(), b.companion()
		b.text(leaving)
		process, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // as a terminal, a session and a service manager do, one after the other
			_ = process.Signal(syscall.SIGHUP)
			_ = process.Signal(syscall.SIGTERM)
		}
		b.until("the editor's end", func() bool { return !alive(pid) })
		b.until("the companion's end", func() bool { return !alive(companion) })
		b.until("the end of its file", func() bool { return len(b.files()) == 0 })
		if o := a.Outcome(); o.Method != "ide/diffRejected" {
			t.Errorf("%+v", o)
		}
	}
}

// an editor that was killed and is opened again serves the same CLIs.
func vimEditorAgain(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	port := b.port()
	b.kill(b.pid(), syscall.SIGKILL)
	b.until("the end", func() bool { return len(b.files()) == 0 })
	_ = os.Remove(filepath.Join(b.root, "n")) // Neovim does not listen where it did
	b.open("a")
	if b.port() != port {
		t.Errorf("port %d became %d", port, b.port())
	}
	b.sees(b.connect(), "a 1:1")
}

// F-5: a proposal for a file in a folder that is not there, with a name full of signs.
func vimOpenDocument(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	for _, name := range []string{"d/it's 100% [new] #1 $HOME.txt", "ünï 😀/*?.md"} {
		a.OpenDiff(b.path(name), "text\n")
		b.is("&diff . getline(1)", "1text")
		b.ex("w")
		if o := a.Outcome(); o.Content != "text\n" || o.FilePath != b.path(name) {
			t.Errorf("%+v", o)
		}
		b.is("tabpagenr('$')", "1")
	}
}

// EDITOR-PROTOCOL, pollux/openDocument: pollux open shows the place, counted in UTF-16.
func vimOpenPlace(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "dir/b.txt": "one\nzwei 😀é here\n"})
	b.open("a")
	b.connect()
	for place, stands := range map[string]string{"dir/b.txt:2:10": "2here", "dir/b.txt:1:3": "1e", "dir/b.txt:2:1": "2zwei 😀é here", "dir/b.txt:2:8": "2é here", "dir/b.txt:9:99": "2e"} {
		cmd := exec.CommandContext(t.Context(), binary(), "open", place)
		cmd.Dir, cmd.Env = b.project, b.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b.is("expand('%:t') . line('.') . strpart(getline('.'), col('.') - 1)", "b.txt"+stands)
	}
}

// A diff that gets no tab page now, because a tab page of before is closing or
// an autocommand goes elsewhere (E36 where a split has no room either), comes
// as soon as it gets one, and touches no window of the user's.
func vimNoTab(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n"})
	b.open("a", "b")
	a := b.connect()
	b.ex("set hidden | tabnew b | tabprevious")
	const user = "tabpagenr('$') . winnr('$') . getline(1) . &buftype . &diff . getbufline('a', 1)[0] . getbufline('b', 1)[0]"
	for _, room := range []string{"set winminheight& winheight&", "set winheight=40 winminheight=40"} {
		b.ex(room + " | let g:stuck = 5")
		b.is("g:stuck . "+user, "521a0ab")
		b.ex("autocmd TabLeave * if g:stuck > 0 | let g:stuck -= 1 | tabnext | endif")
		b.is("exists('#TabLeave')", "1")
		a.OpenDiff(b.path("a"), "new\n")
		b.is("g:stuck . &diff . getline(1) . winnr('$') . tabpagenr('$')", "01new23")
		b.ex("autocmd! TabLeave")
		b.ex("w")
		if o := a.Outcome(); o.Content != "new\n" {
			t.Errorf("%+v", o)
		}
		b.is(user, "21a0ab")
	}
}

// A diff that has no room for two windows says so, leaves everything as it
// was, and comes when the user asks for it with room.
func vimNoRoom(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	a := b.connect()
	b.ex("set winwidth=150 winminwidth=150")
	b.is("&winminwidth", "150")
	a.OpenDiff(b.path("a"), "new\n")
	b.says("a diff cannot be shown: ")
	b.says("E36: Not enough room (try :Pollux review)")
	b.is("tabpagenr('$') . winnr('$') . getline(1) . &diff . &buftype", "11a0")
	b.ex("Pollux review")
	b.says("the diff cannot be shown: ")
	b.is("tabpagenr('$') . winnr('$') . getline(1) . &diff . &buftype", "11a0")
	b.ex("set winminwidth& winwidth&")
	b.ex("Pollux review")
	b.is("&diff . getline(1) . winnr('$')", "1new2")
	b.text("Aer")
	b.escape()
	b.ex("w")
	if o := a.Outcome(); o.Content != "newer\n" {
		t.Errorf("%+v", o)
	}
	b.is("tabpagenr('$') . winnr('$') . getline(1) . &diff", "11a0")
}
