package editors

import "strings"

// vi is the user of Neovim or Vim, which have the keys and the language in common.
type vi struct{ b *bench }

func (v vi) begin(line int) {
	v.b.Helper()
	v.b.text(itoa(line) + "GA")
	v.b.is("mode()", "i")
}
func (v vi) done()             { v.b.Helper(); v.b.escape() }
func (v vi) adds(text string)  { v.b.Helper(); v.b.text("Go" + text); v.b.escape() }
func (v vi) visit(file string) { v.b.Helper(); v.b.ex("hide edit " + file) }
func (v vi) save()             { v.b.Helper(); v.b.ex("w") }
func (v vi) undo()             { v.b.Helper(); v.b.text("u") }
func (v vi) redo()             { v.b.Helper(); v.b.text("\x12") }
func (v vi) mark()             { v.b.Helper(); v.b.text("ma") }
func (v vi) command(name string) {
	v.b.Helper()
	v.b.ex("Pollux " + strings.TrimPrefix(name, "pollux."))
}
func (v vi) accept() { v.b.Helper(); v.b.ex("w") }
func (v vi) reject() { v.b.Helper(); v.b.ex("q") }
func (v vi) keep()   { v.b.Helper(); v.b.ex("Pollux keep") }
func (v vi) take()   { v.b.Helper(); v.b.ex("Pollux take") }

func (v vi) arrange() {
	v.b.Helper()
	v.b.ex("set noautoread hidden foldmethod=manual | 70,75fold | normal! zR")
	v.b.text("75Gma70Gzc60Gzt3l")
}

// typed are ways by what is typed in normal mode.
func (v vi) typed(all ...string) (ways []way) {
	for _, keys := range all {
		ways = append(ways, way{strings.TrimSpace(keys), func() { v.b.Helper(); v.b.text(keys) }})
	}
	return ways
}

func (v vi) accepting() []way {
	return v.typed(":w\n", ":wq\n", ":x\n", "ZZ", ":Pollux accept\n", ":xit\n", ":x!\n", ":exit\n", ":update\n", ":up\n")
}

func (v vi) rejecting() []way {
	return v.typed(":q\n", ":Pollux reject\n", ":tabclose\n", "ZQ", ":q!\n", ":close\n", ":bwipeout!\n")
}

func (v vi) place() string {
	return "&diff . mode(1) . winnr() . winnr('$') . &modified ==# '1n220' ? expand('%:t') . ' <proposal>' : " +
		"&diff . mode(1) . tabpagenr('$') . winnr('$') ==# '0n11' ? expand('%:t') : " +
		"join(['elsewhere', expand('%'), &diff, mode(1), winnr(), winnr('$'), tabpagenr('$'), &modified])"
}

func (v vi) cursor() string {
	return "line('.') . ' ' . strpart(getline('.'), 0, col('.') - (mode() ==# 'i'))"
}
func (v vi) marked() string { return `line("'a")` }
func (v vi) arranged() string {
	return `join([line('.'), col('.') - 1, line('w0'), line("'a"), foldclosed(line("'a"))])`
}
func (v vi) typing() string { return "mode() ==# 'i'" }
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
func (v vi) hints() []string      { return []string{"conflict: :Pollux keep or take"} }

// side is the text of a window of a diff: 1 is the file, 2 the proposal.
func side(window int) string { return "join(getbufline(winbufnr(" + itoa(window) + "), 1, '$'), '|')" }
