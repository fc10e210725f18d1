package editors

import (
	"fmt"
	"strings"
)

// vi is the user of Neovim or Vim, which have the keys and the language in common.
type vi struct{ b *bench }

func (v vi) begin(line int) {
	v.b.Helper()
	v.b.text(itoa(line) + "GA")
	v.b.is("mode()", "i")
}
func (v vi) done()            { v.b.Helper(); v.b.escape() }
func (v vi) adds(text string) { v.b.Helper(); v.b.text("Go" + text); v.b.escape() }
func (v vi) jots(line int, text string) {
	v.b.Helper()
	v.b.text(itoa(line) + "Go" + text)
	v.b.keys("Escape")
}
func (v vi) visit(file string)  { v.b.Helper(); v.b.ex("hide edit " + file) }
func (v vi) save()              { v.b.Helper(); v.b.ex("w") }
func (v vi) saveAs(file string) { v.b.Helper(); v.b.ex("saveas " + file) }
func (v vi) close()             { v.b.Helper(); v.b.ex("bwipeout!") }
func (v vi) undo()              { v.b.Helper(); v.b.text("u") }
func (v vi) redo()              { v.b.Helper(); v.b.text("\x12") }
func (v vi) mark()              { v.b.Helper(); v.b.text("ma") }
func (v vi) command(name string) {
	v.b.Helper()
	v.b.ex("Pollux " + strings.TrimPrefix(name, "pollux."))
}
func (v vi) accept() { v.b.Helper(); v.b.ex("w") }
func (v vi) reject() { v.b.Helper(); v.b.ex("q") }
func (v vi) undoPast(file string) {
	v.b.Helper()
	v.b.ex("Pollux undo")
	v.b.tm.Wait(file+"  accepted", patience)
	v.b.text(map[string]string{"neovim": "1\r", "vim": "\r"}[v.b.f.name])
}
func (v vi) keep() { v.b.Helper(); v.b.ex("Pollux keep") }
func (v vi) take() { v.b.Helper(); v.b.ex("Pollux take") }

func (v vi) arrange() {
	v.b.Helper()
	v.b.ex("set noautoread hidden foldmethod=manual | 70,75fold | normal! zR")
	v.b.text("75Gma70Gzc60Gzt3l")
}

func (v vi) acceptAllOfFile() { v.b.Helper(); v.b.ex("Pollux accept-all file") }
func (v vi) noFiles() []way {
	b := v.b
	var ways []string
	for _, command := range []string{
		"edit .",                      // netrw
		"edit " + b.path("sub") + "/", // dirvish has such names
		"enew | silent file oil://" + b.path("sub") + "/",
		"enew | silent file fugitive://" + b.path(".git") + "//0/a",
		"enew | silent file term://x",
		"enew | setlocal buftype=nofile | silent file " + b.path("sub/x"),
		"edit " + b.path("none"),
		"edit .git/COMMIT_EDITMSG", "enew", "help", "terminal",
	} {
		ways = append(ways, "set hidden | silent! split | "+command)
	}
	return v.commands(ways...)
}

func (v vi) back(string) { v.b.Helper(); v.b.keys("C-\\", "C-n"); v.b.ex("b! 1 | only!") }

func (v vi) run(prompt string) {
	v.b.Helper()
	v.b.ex("Pollux run gemini -i " + strings.ReplaceAll(prompt, " ", `\ `))
}

func (v vi) seekCLI() {
	v.b.Helper()
	v.b.text("gT")
	v.b.is("&diff . tabpagenr() . &buftype", "01terminal")
	v.b.text("i")
	v.b.is("mode()", "t")
}
func (v vi) refuses() string { return "Escape" }

func (v vi) leaving() []leave {
	ways := v.commands("qa!", "wqa", "xa")
	return []leave{{ways[0], "b\n"}, {ways[1], "bmine\n"}, {ways[2], "bmine\n"}}
}

func (v vi) abandons() { v.b.Helper(); v.b.ex("qa!") }

func (v vi) policy(decision, pattern string) {
	v.b.Helper()
	v.b.ex("Pollux policy " + decision + " pattern " + pattern)
	rule := fmt.Sprintf("%-10s%s", decision, pattern)
	v.b.until("the rule "+rule, func() bool { // the editor hears of it after the command
		v.b.ex("Pollux policy")
		return strings.Contains(v.b.eval(v.b.f.messages), rule)
	})
}

func (v vi) saveCopy(file string, there bool) {
	v.b.Helper()
	v.b.ex("w " + file)
	if there {
		v.b.says("(add ! to ")
		v.b.ex("w! " + file)
	}
}

func (v vi) undone(text string) { v.b.Helper(); v.b.text("i" + text); v.b.keys("BSpace"); v.b.escape() }
func (v vi) selectAll()         { v.b.Helper(); v.b.text("ggVG"); v.b.is("mode()", "V") }
func (v vi) unselect()          { v.b.Helper(); v.b.escape() }
func (v vi) focus(when string)  { v.b.Helper(); v.b.setting("focus", "'"+when+"'") }
func (v vi) savesItself() {
	v.b.Helper()
	v.b.ex("set autowriteall | autocmd TextChanged,TextChangedI,CursorHold * nested silent! wall")
	v.b.is("&autowriteall", "1")
}

func (v vi) busy() []interruption {
	b := v.b
	all := []interruption{
		{"typing", func() { b.text("itypi") }, "mode() ==# 'i'", func() { b.text("ng "); b.is("getline(1) . mode() . tabpagenr('$')", "typing ai1") }, b.escape},
		{"the command-line window", func() { b.text("q:") }, "getcmdwintype() ==# ':'", nil, func() { b.ex("q") }},
		{"a command", func() { b.text(":echo 'half") }, "mode() ==# 'c'", nil, func() { b.text("'\r") }},
		{"a recording", func() { b.text("qa") }, "reg_recording() ==# 'a'", nil, func() { b.keys("q") }},
		{"an operator", func() { b.text("d") }, "mode(1) ==# 'no'", nil, func() { b.keys("Escape") }},
	}
	if b.f.name == "vim" { // a Neovim that waits for more takes no proposal
		for _, keys := range []string{"3", "\"a", "f"} {
			all = append(all, interruption{keys, func() { b.text(keys) }, "stridx(state(), 'S') >= 0", nil, func() { b.keys("Escape") }})
		}
	}
	return all
}

// state is all that a diff must give back.
const state = `winrestcmd() . string(winsaveview()) . string(map(range(1, winnr('$')), 'winbufnr(v:val)')) . expand('%') . expand('#') . winnr() . winnr('#') . tabpagenr() . tabpagenr('#') . tabpagenr('$')` +
	` . getreg('"') . getreg('0') . getreg('-') . getreg('.') . getreg('/') . mode() . string(map(range(1, line('$')), 'foldclosed(v:val)')) . string(getpos("'a")) . string(getpos("'<")) . string(getpos("'\x27"))` +
	` . string(getjumplist()[1]) . &lazyredraw . &eventignore . &splitright . &equalalways . b:changedtick . &modified . getcwd() . v:hlsearch . string(getqflist()) . &cmdheight . &foldmethod . &wrap . &scrollbind . &cursorbind . &diff . &foldcolumn`

func (v vi) scenes() []scene {
	as := func(f flavour) flavour { return f }
	return []scene{
		{as, []string{"a", "b"}, func(b *bench) {
			b.ex("set hidden | split | vsplit | resize 7 | b 2 | wincmd p")
			b.text("100Gzt3lyl")
			b.is("line('.') . mode()", "100n")
		}, state},
		{as, []string{"a", "b", "c"}, func(b *bench) {
			b.ex("tabnew c | tabprevious | set hidden foldmethod=manual | 20,40fold | 60,70fold | vsplit | split b | resize 5 | vertical resize 30 | wincmd p | wincmd p | wincmd t | wincmd w")
			b.ex("50 | mark a | normal! ztyiw | normal! 5lx")
			b.text("/line\r")
			b.text("100Gmzvj")
			b.escape()
			b.text("u")
			b.ex("let g:arranged = 1")
			b.is("get(g:, 'arranged')", "1")
		}, state},
	}
}

// commands are ways by commands of Vim's; normal by keys in normal mode.
func (v vi) commands(all ...string) (ways []way) {
	for _, command := range all {
		ways = append(ways, way{":" + command, func() { v.b.Helper(); v.b.ex(command) }})
	}
	return ways
}

func (v vi) normal(keys string) way { return way{keys, func() { v.b.Helper(); v.b.text(keys) }} }

func (v vi) accepting() []way {
	return append(v.commands("w", "wq", "x", "Pollux accept", "xit", "x!", "exit", "update", "up"), v.normal("ZZ"))
}

func (v vi) rejecting() []way {
	return append(v.commands("q", "Pollux reject", "tabclose", "q!", "close", "bwipeout!"), v.normal("ZQ"))
}

func (v vi) place() string {
	return "&diff . mode(1) . winnr() . winnr('$') . &modified ==# '1n220' ? substitute(expand('%:t'), ' (proposal)$', ' <proposal>', '') : " +
		"&diff . mode(1) . tabpagenr('$') . winnr('$') . len(filter(getbufinfo(), 'v:val.name =~# \"^pollux://\" && v:val.name !~# \"/edited/\"')) ==# '0n110' ? expand('%:t') : " +
		"join(['elsewhere', expand('%'), &diff, mode(1), winnr(), winnr('$'), tabpagenr('$'), &modified])"
}

func (v vi) cursor() string {
	return "line('.') . ' ' . strpart(getline('.'), 0, col('.') - (mode() ==# 'i'))"
}
func (v vi) marked() string { return `line("'a")` }
func (v vi) arranged() string {
	return `join([line('.'), col('.') - 1, line('w0'), line("'a"), foldclosed(line("'a"))])`
}
func (v vi) process() string              { return "getpid()" }
func (v vi) variable(name string) string  { return "$" + name }
func (v vi) output(command string) string { return "trim(system('" + command + "'))" }
func (v vi) under() string                { return "matchstr(getline('.'), '.', col('.') - 1)" }
func (v vi) inCLI() string                { return "&diff . tabpagenr('$') . mode() . &buftype ==# '01tterminal'" }
func (v vi) alone() string                { return "tabpagenr('$') . &diff ==# '10'" }
func (v vi) kept(string) string {
	return "getbufvar('edited', '&buftype') ==# 'nofile' ? getbufline('edited', 1)[0] : 'nothing'"
}
func (v vi) language() string { return "&syntax" }
func (v vi) at() string       { return "line('.')" }
func (v vi) inSight() string  { return "line('w0') <= line('.') && line('.') <= line('w$')" }
func (v vi) typing() string   { return "mode() ==# 'i'" }
func (v vi) buffer(file string) string {
	return "join(getbufline('" + v.b.path(file) + "', 1, '$'), '|')"
}
func (v vi) proposal(string) string      { return side(2) }
func (v vi) original(string) string      { return side(1) }
func (v vi) modified(file string) string { return "getbufvar('" + v.b.path(file) + "', '&modified')" }
func (v vi) conflicts() string {
	return "join(map(sign_getplaced(bufnr('%'), {'group': 'pollux'})[0].signs, 'v:val.lnum'))"
}
func (v vi) merging(what string) string {
	return "tabpagenr() . winnr('$') . winnr() . &diff ==# '2331' ? " + side(map[string]int{"disk": 1, "began": 2, "mine": 3}[what]) + " : 'no merge'"
}
func (v vi) complaints() []string { return []string{"W1", "E211", "WARNING"} }
func (v vi) questions() map[string]string {
	return map[string]string{"Do you really want to write to it": "n"}
}
func (v vi) everything() string {
	return "join(map(getbufinfo({'bufloaded': 1}), 'join(getbufline(v:val.bufnr, 1, \"$\"), \"|\")'), '|')"
}
func (v vi) hints(of string) []string {
	return map[string][]string{"conflict": {"conflict: :Pollux keep or take"}, "unsaved": {"without your unsaved changes"}}[of]
}

// side is the text of a window of a diff: 1 is the file, 2 the proposal.
func side(window int) string { return "join(getbufline(winbufnr(" + itoa(window) + "), 1, '$'), '|')" }

// vimLater starts a timer. When it goes off, every timer that was due before has gone off.
func vimLater(b *bench, ms int) string {
	b.eval("extend(g:, {'later': 0})")
	b.eval("timer_start(" + itoa(ms) + ", {-> extend(g:, {'later': 1})})")
	return "g:later"
}

// setting gives one of the plugin's another value.
func (b *bench) setting(name, value string) {
	b.Helper()
	b.ex("let g:pollux = extend(copy(g:pollux), {'" + name + "': " + value + "})")
	b.is("string(g:pollux."+name+")", strings.TrimSpace(b.eval("string("+value+")")))
}
