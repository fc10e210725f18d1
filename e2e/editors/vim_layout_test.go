package editors

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
		b.is("index(['24', '153'], synIDattr(synIDtrans(hlID('PolluxText')), 'bg', 'cterm')) >= 0", "1")
		b.text(keys)
		if o := a.Outcome(); o.Method != want {
			t.Errorf("%s: %+v", keys, o)
		}
		b.is("tabpagenr('$')", "1")
	}
	// Calm colours only where nobody has chosen any; the tab is named after the file.
	b.ex("colorscheme desert")
	b.offer(a, "a", "new\n")
	b.is("synIDtrans(hlID('PolluxText')) == hlID('DiffText')", "1")
	if screen := b.tm.Screen(); !strings.HasPrefix(screen, " a  a (proposal) ") {
		t.Errorf("%s", screen)
	}
	b.is("winwidth(1) < &columns", "1")
	b.text("gr")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	// One above the other, by 'diffopt' or by the setting.
	b.ex("set diffopt+=horizontal")
	b.offer(a, "a", "new\n")
	b.is("winwidth(1) . ' ' . winwidth(2)", b.eval("&columns . ' ' . &columns"))
	b.text("gr")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	b.setting("layout", "'vertical'")
	b.offer(a, "a", "new\n")
	b.is("winwidth(1) < &columns", "1")
	b.text("gA")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	a.OpenDiff(b.path("a"), "more\n")
	b.accepted(a, "a", "more\n")
}

// A diff's layout: one side above the other where two do not fit, unless the user says otherwise; unified.
func vimLayouts(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.txt": nine}, "a.txt")
	options := b.eval("&signcolumn . &number . &foldenable . &diff . &laststatus . winheight(1)")
	b.tm.Resize(80, 40)
	b.is("&columns", "80")
	b.offer(a, "a.txt", proposed)
	b.is("winwidth(1) . ' ' . winwidth(2)", "80 80")
	b.reject()
	b.rejected(a, "a.txt")
	b.calm("a.txt")
	b.step("the user wants sides beside each other all the same")
	b.ex("set diffopt+=vertical")
	b.offer(a, "a.txt", proposed)
	b.is("winwidth(1) < 80", "1")
	b.reject()
	b.rejected(a, "a.txt")
	b.calm("a.txt")

	b.step("unified")
	b.setting("layout", "'unified'")
	const here = "&diff . winnr('$') . tabpagenr('$') . expand('%:t')"
	a.OpenDiff(b.path("a.txt"), strings.NewReplacer("one", "ONE", "five\n", "", "nine\n", "nine\n\tten\n").Replace(nine))
	b.is(here, "012a.txt (proposal)")
	for _, want := range []string{"- one", "ONE", "- five", "+       ", "change 1/3"} {
		b.tm.Wait(want, patience)
	}
	b.is("line('.')", "1")
	for _, step := range [][2]string{{"]c", "5 six"}, {"]c", "9 ^Iten"}, {"]c", "9 ^Iten"}, {"[c", "5 six"}} {
		b.text(step[0])
		b.is("line('.') . ' ' . strtrans(getline('.'))", step[1])
	}
	b.step("the user takes a change back, and edits")
	b.text("do")
	b.is("getline(5)", "five")
	b.types(2, " edited")
	b.tm.Wait("+ two edited", patience)
	screen := b.tm.Wait("- two", patience)
	if strings.Contains(screen, "- five") {
		t.Errorf("%s", screen)
	}
	b.step("the file changes")
	b.shell("sed -i s/seven/SEVEN/ a.txt")
	want := strings.NewReplacer("one", "ONE", "two", "two edited", "seven", "SEVEN", "nine\n", "nine\n\tten\n").Replace(nine)
	const text = "strtrans(join(getline(1, '$'), '|'))"
	printable := strings.NewReplacer("\t", "^I", "\x01", "^A")
	b.is(text, printable.Replace(lines(want)))
	b.until("its line is no change", func() bool {
		s := b.tm.Screen()
		return strings.Contains(s, "SEVEN") && !strings.Contains(s, "+ SEVEN")
	})
	b.accept()
	b.accepted(a, "a.txt", want)
	b.calm("a.txt")
	b.tm.Resize(160, 50)
	b.is("&signcolumn . &number . &foldenable . &diff . &laststatus . winheight(1)", options)
	for what, tt := range map[string]struct{ file, text, shows string }{
		"a new file":      {"new.txt", "x\n", "+ x"},
		"the first lines": {"a.txt", strings.TrimPrefix(nine, "one\ntwo\n"), "- one"},
		"the last lines":  {"a.txt", strings.TrimSuffix(nine, "eight\nnine\n"), "- nine"},
		"wide and hidden": {"a.txt", strings.Replace(nine, "four", "vier\x01 日本", 1), "- four"},
		"all of it":       {"a.txt", "x\n", "- nine"},
	} {
		b.step("%s", what)
		b.write("a.txt", nine)
		a.OpenDiff(b.path(tt.file), tt.text)
		b.is(here, "012"+tt.file+" (proposal)")
		b.tm.Wait(tt.shows, patience)
		b.tm.Wait("change", patience)
		b.text("]c[cdou")
		b.is(text, printable.Replace(lines(tt.text)))
		b.reject()
		b.rejected(a, tt.file)
		b.calm("a.txt")
	}
}

// A diff on show is laid out anew when the screen gets another size, with what the user has typed and where they are.
func vimResized(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.txt": nine}, "a.txt")
	sizes := "winwidth(1) . ' ' . winwidth(2)"
	b.offer(a, "a.txt", proposed)
	b.is("winwidth(1) < 81 && winwidth(2) < 81", "1")
	b.types(5, " edited")
	want := strings.Replace(proposed, "five", "five edited", 1)
	for range 2 {
		b.step("the screen gets narrow")
		b.tm.Resize(80, 40)
		b.is(sizes, "80 80")
		b.is("winheight(1) - winheight(2) <= 1", "1")
		b.shows("a.txt", want)
		b.is(b.cursor(), "5 five edited")
		b.step("the screen gets wide, with the user elsewhere")
		b.text("gT")
		b.is("&diff", "0")
		b.tm.Resize(160, 50)
		b.is("&columns", "160")
		b.text("gt")
		b.is("winwidth(1) < 81 && winwidth(2) < 81", "1")
		b.is("winheight(1) == winheight(2)", "1")
		b.shows("a.txt", want)
	}
	b.step("the user wants them beside each other")
	b.setting("layout", "'vertical'")
	b.tm.Resize(80, 40)
	b.is("&columns . (winwidth(1) < 41)", "801")
	a.Quiet()
	b.accept()
	b.accepted(a, "a.txt", want)
	b.calm("a.txt")
}

// The layout "terminal": the agent's terminal stays in sight beside the diff, where it was, and is the user's as before.
func vimBesideTerminal(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.txt": nine, "../bin/agent": "#!/bin/sh\necho ready\nwhile read -r line; do echo \"got $line\"; done\n"})
	if err := os.Chmod(b.path("../bin/agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.open("a.txt")
	a := b.connect()
	b.setting("layout", "'terminal'")
	neovim := f.name == "neovim"
	leave := func() {
		if neovim {
			b.keys("C-\\", "C-n")
			b.is("mode(1)", "nt")
		}
		pressed := time.Time{}
		b.until("the window before", func() bool {
			if time.Since(pressed) > 2*time.Second { // Vim may hand a lone p to the terminal when a timer goes off between two keys
				b.keys("C-w", "p")
				pressed = time.Now()
			}
			return b.eval("&buftype ==# 'terminal'") == "0"
		})
	}
	enter := func(count string) {
		b.text(count)
		b.keys("C-w", "w")
		b.is("&buftype", "terminal")
		if neovim {
			b.text("i")
		}
		b.is("mode()", "t")
	}
	for side, at := range map[string]string{"right": "winnr('$')", "left": "1", "bottom": "winnr('$')"} {
		b.step("the terminal is at the %s", side)
		b.setting("side", "'"+side+"'")
		b.ex("Pollux run " + b.root + "/bin/agent")
		b.is("&buftype . mode()", "terminalt")
		b.text("one\r")
		b.tm.Wait("got one", patience)
		leave()
		const windows = "join(map(range(1, winnr('$')), 'winwidth(v:val) . \"x\" . winheight(v:val)')) . expand('%') . tabpagenr('$')"
		b.is("winnr('$') . expand('%')", "2a.txt")
		before := b.eval(windows)
		for _, decide := range append(b.accepting()[:2], b.rejecting()[0], b.rejecting()[2]) {
			b.step("the terminal is at the %s, and the user decides by %s", side, decide.name)
			a.OpenDiff(b.path("a.txt"), proposed)
			b.is("&diff . winnr('$') . expand('%:t')", "13a.txt (proposal)")
			b.is("getbufvar(winbufnr("+at+"), '&buftype')", "terminal")
			b.tm.Wait("got one", patience)
			decide.do()
			a.Outcome()
			b.is(windows, before)
		}
		b.step("the user goes to the terminal at the %s from a proposal, and types", side)
		a.OpenDiff(b.path("a.txt"), proposed)
		b.is("&diff . winnr('$')", "13")
		b.types(5, " edited")
		enter(map[bool]string{true: "1", false: "9"}[at == "1"])
		b.text("two\r")
		b.tm.Wait("got two", patience)
		b.step("the screen gets narrow")
		b.tm.Resize(80, 40)
		b.is("&columns . (winwidth("+at+") > 20)", "801")
		leave()
		b.is("expand('%:t') . getline(5)", "a.txt (proposal)five edited")
		b.is("winwidth(0) > 40 && winheight(0) > 5", "1")
		b.tm.Resize(160, 50)
		b.is("&columns", "160")
		b.accept()
		b.accepted(a, "a.txt", strings.Replace(proposed, "five", "five edited", 1))
		b.is("winnr('$') . tabpagenr('$') . expand('%')", "21a.txt")
		b.ex("bwipeout! agent")
		b.is("winnr('$') . expand('%')", "1a.txt")
	}
	b.step("no terminal is on the screen")
	b.offer(a, "a.txt", proposed)
	b.reject()
	b.rejected(a, "a.txt")
	b.calm("a.txt")
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
