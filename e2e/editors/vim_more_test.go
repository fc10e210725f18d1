package editors

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// setting gives one of the plugin's another value.
func (b *bench) setting(name, value string) {
	b.Helper()
	b.ex("let g:pollux = extend(copy(g:pollux), {'" + name + "': " + value + "})")
	b.is("string(g:pollux."+name+")", strings.TrimSpace(b.eval("string("+value+")")))
}

// C-2: the focus follows the user through windows and tab pages, and what lies
// in the others stays open.
func vimTabs(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"}, "a")
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

// C-4: blocks in every direction, over tabs and wide characters; other ways to select.
func vimBlocks(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "\tone\n日本語 x\nplain text\n"}, "a")
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

// :Pollux review shows what waits, by its number or the next one; :Pollux reject is for the one on show, wherever the focus is.
func vimReview(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a")
	b.focus("never")
	a.OpenDiff(b.path("a"), "new\n")
	b.says("waits, :Pollux review shows it")
	a.OpenDiff(b.path("b"), "two\n")
	b.ex("Pollux status")
	b.says("diff 1     a – Gemini CLI #1")
	b.says("diff 2     b – Gemini CLI #1")
	b.step("the user asks for the second, and for the next one")
	b.ex("Pollux review 2")
	b.shows("b", "two\n")
	b.ex("Pollux review next")
	b.shows("a", "new\n")
	b.accept()
	b.accepted(a, "a", "new\n")
	b.is("tabpagenr('$') . &diff . getline(1)", "21two")
	b.step("the user goes to their own tab page")
	b.ex("tabfirst")
	b.is("tabpagenr() . &diff", "10")
	b.ex("Pollux reject")
	b.rejected(a, "b")
	b.calm("a")
	b.ex("Pollux review next")
	b.says("no other diff waits")
}

// F-11: to the terminal, and what the rules are.
func vimPolicies(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "d/x.go": "x\n"}, "a")
	b.ex("Pollux policy accept pattern " + b.project + "/d/*.go")
	b.says("1 rule")
	b.ex("Pollux policy terminal pattern " + b.project + "/b")
	b.says("2 rules")
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
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.setting("mappings", "{'accept': 'ga', 'reject': 'gr', 'accept_all': 'gA'}")
	b.ex("highlight PolluxLabel ctermfg=1")
	for keys, want := range map[string]string{"ga": "ide/diffAccepted", "gr": "ide/diffRejected"} {
		b.offer(a, "a", "new\n")
		b.is("maparg('ZZ', 'n')", "")
		b.is("stridx(&l:statusline, '%#PolluxLabel#')", "0")
		b.is("synIDattr(hlID('PolluxLabel'), 'fg', 'cterm')", "1")
		b.text(keys)
		if o := a.Outcome(); o.Method != want {
			t.Errorf("%s: %+v", keys, o)
		}
		b.is("tabpagenr('$')", "1")
	}
	b.offer(a, "a", "new\n")
	b.text("gA")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	a.OpenDiff(b.path("a"), "more\n")
	b.accepted(a, "a", "more\n")
}

// What is no UTF-8 cannot be accepted: the diff stays, and says so.
func vimInvalid(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
	b.offer(a, "a", "new\n")
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

// Under every setting of saving the user's own unsaved text stays, and only :w by hand accepts.
func vimSaveSettings(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a", "b")
	for _, settings := range []string{"hidden noautowrite", "nohidden noautowrite", "nohidden autowrite", "hidden autowriteall backup writebackup confirm"} {
		b.ex("set " + settings)
		b.text("ggccunsaved")
		b.escape()
		b.is("getline(1) . &modified", "unsaved1")
		b.offer(a, "b", "new\n")
		b.types(1, "x")
		b.ex("w")
		b.accepted(a, "b", "newx\n")
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
		b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
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
		b.rejected(a, "a")
	}
}

// A diff that gets no tab page now, because a tab page of before is closing or
// an autocommand goes elsewhere (E36 where a split has no room either), comes
// as soon as it gets one, and touches no window of the user's.
func vimNoTab(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n"}, "a", "b")
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
		b.accepted(a, "a", "new\n")
		b.is(user, "21a0ab")
	}
}

// A diff that has no room for two windows says so, leaves everything as it
// was, and comes when the user asks for it with room.
func vimNoRoom(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
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
	b.types(1, "er")
	b.ex("w")
	b.accepted(a, "a", "newer\n")
	b.is("tabpagenr('$') . winnr('$') . getline(1) . &diff", "11a0")
}
