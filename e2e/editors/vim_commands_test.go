package editors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
)

// The commands that say and show.
func vimCommands(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.browse()
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.is("&diff", "1")
	b.ex("Pollux status")
	b.says("companion  running")
	b.is("mode(1)", "n") // no key is asked for
	b.says("port " + itoa(b.port()))
	b.says("folders    " + b.project)
	b.says("session    ")
	b.is("&diff", "1")
	line := map[string]string{"neovim": `luaeval("require('pollux').statusline()")`, "vim": "pollux#statusline()"}[f.name]
	b.is(line, "Gemini 1 ±1")
	b.ex("q")
	a.Outcome()
	b.is("tabpagenr('$')", "1")
	b.is(line, "Gemini 1")
	b.ex("Pollux log")
	b.is("expand('%:t')", "pollux.log")
	b.is("tabpagenr('$')", "2")
	b.ex("tabclose")
	b.is("tabpagenr('$')", "1")
	b.ex("Pollux page")
	b.page()
	b.ex("Pollux nothing")
	b.says("no :Pollux nothing; see :help :Pollux")
	b.is("mode(1)", "n")
	b.ex("Pollux accept")
	b.says("no diff is open")
	b.is("getcompletion('Pollux re', 'cmdline') == ['reject', 'restart', 'resume', 'review']", "1")
	port := b.port()
	b.ex("Pollux stop")
	b.until("the end", func() bool { return len(b.files()) == 0 })
	b.is("exists('$GEMINI_CLI_IDE_AUTH_TOKEN') && $GEMINI_CLI_IDE_AUTH_TOKEN !=# ''", "0")
	b.is(line, "")
	b.ex("Pollux start")
	b.is(b.f.running, b.f.yes)
	b.is("$GEMINI_CLI_IDE_SERVER_PORT", itoa(port)) // it takes over from itself
	b.ex("Pollux restart")
	b.is(line, "no agent")
}

// fakeCLI is a stand-in for Gemini CLI in the user's PATH: it keeps what is typed.
func (b *bench) fakeCLI() {
	b.write("../bin/gemini", "#!/bin/sh\necho \"$GEMINI_CLI_IDE_SERVER_PORT\" > \"$HOME/cli-port\"\nstty -icanon -echo\ntrap 'date >> \"$HOME/winch\"' WINCH\nwhile :; do cat >> \"$HOME/typed\" && exit; done\n")
	if err := os.Chmod(filepath.Join(b.root, "bin", "gemini"), 0o700); err != nil {
		b.Fatal(err)
	}
	b.env = append(b.env, "PATH="+filepath.Join(b.root, "bin")+":"+filepath.Dir(binary())+":"+os.Getenv("PATH"))
}

// :Pollux run and send; C-6: the selection stays while the user is in the CLI's terminal.
func vimCLI(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a b.go": sample, "(g)/[id], {x}.go": "c\n"})
	b.fakeCLI()
	b.open("a b.go")
	b.ex("Pollux send")
	b.says("no CLI runs here; start one with :Pollux run")
	a := b.connect()
	b.sees(a, "a b.go 1:1")
	b.text("3G0wviw")
	b.sees(a, `a b.go 3:6 "hällo"`)
	b.escape()
	b.ex("Pollux run")
	b.is("&buftype", "terminal")
	b.until("the CLI's variable", func() bool {
		data, _ := os.ReadFile(filepath.Join(b.root, "cli-port"))
		return strings.TrimSpace(string(data)) == itoa(b.port())
	})
	b.pause(300)
	b.sees(b.connect(), `a b.go 3:6 "hällo"`)
	leave := func() {
		if f.name == "neovim" {
			b.keys("C-\\", "C-n")
			b.is("mode(1)", "nt")
			b.text(":wincmd p\r")
			return
		}
		b.keys("C-w", "p")
	}
	leave()
	b.is("expand('%')", "a b.go")
	b.ex("2,4Pollux send")
	typed := func(want string) {
		t.Helper()
		b.until(want, func() bool {
			data, _ := os.ReadFile(filepath.Join(b.root, "typed"))
			return string(data) == want
		})
	}
	typed(`@a\ b.go lines 2-4 `)
	b.ex("Pollux send")
	typed(`@a\ b.go lines 2-4 @a\ b.go `)
	// Nothing in a name ends the mention, and it is below the CLI's folder wherever this window is.
	b.ex(`lcd \(g\)`)
	b.is("fnamemodify(getcwd(), ':t')", "(g)")
	b.ex(`execute 'edit' fnameescape('[id], {x}.go')`)
	b.is("expand('%:t')", "[id], {x}.go")
	b.ex("Pollux send")
	typed(`@a\ b.go lines 2-4 @a\ b.go @\(g\)/\[id\]\,\ \{x\}.go `)
	// There is one terminal, hidden and shown again; a proposal neither resizes it nor leaves it.
	b.ex("Pollux toggle")
	b.is("winnr('$')", "1")
	for _, command := range []string{"toggle", "focus", "run --continue"} {
		b.ex("Pollux " + command)
		b.is("mode() . winnr('$') . &buftype", "t2terminal")
		if command == "toggle" {
			a.OpenDiff(b.path("a b.go"), "new\n")
			b.is("&diff . winnr()", "12")
			b.ex("q")
			b.rejected(a, "a b.go")
			b.is("mode() . winnr('$') . &buftype", "t2terminal")
		}
		leave()
		b.is("winnr()", "1")
	}
	b.is("len(filter(getbufinfo(), 'getbufvar(v:val.bufnr, \"pollux_cli\") ==# \"gemini\"'))", "1")
	if data, err := os.ReadFile(filepath.Join(b.root, "winch")); err == nil {
		t.Errorf("the CLI's terminal was resized: %s", data)
	}
	// Another terminal is no CLI's: nothing stale is active there.
	b.ex(map[string]string{"neovim": "split | terminal sh", "vim": "terminal sh"}[f.name])
	b.is("&buftype", "terminal")
	b.sees(b.connect(), "none")
}

// Who moves and goes to the CLI at once, as by a mapping, has moved all the same.
func vimHaste(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a.go": sample})
	b.fakeCLI()
	b.open("a.go")
	a := b.connect()
	b.sees(a, "a.go 1:1")
	b.text("3G0w:Pollux run\r")
	b.is("&buftype", "terminal")
	b.sees(a, "a.go 3:2")
	leave := map[string][]string{"neovim": {"C-\\", "C-n", "C-w", "p"}, "vim": {"C-w", "p"}}[f.name]
	b.keys(leave...)
	b.is("expand('%')", "a.go")
	b.text("gg0\x17p") // and back
	b.is("&buftype", "terminal")
	b.sees(a, "a.go 1:1")
}

// What is too long for a line is told whole, asks for no key, and is in
// nobody's way: every way out of the diff below it works.
func vimLongWords(t *testing.T, f flavour) {
	name := strings.TrimSpace(strings.Repeat("long ", 20))
	b, a := user(t, f, map[string]string{name: "a\n"}, name)
	b.sees(a, name+" 1:1")
	b.text("ounsaved")
	b.escape()
	b.is("getline(2) . &modified", "unsaved1")
	for _, keys := range []string{"ZQ", ":q\n", ":tabclose\n", ":close\n"} {
		b.ex("messages clear")
		b.offer(a, name, "new\n")
		b.says("your unsaved changes")
		b.says(":q rejects")
		b.is("mode(1)", "n")
		b.text(keys)
		b.rejected(a, name)
		b.is("&diff . tabpagenr('$') . winnr('$') . getline(2)", "011unsaved")
	}
}

// A question waits for a pause, so that nobody who types answers it.
func vimQuestion(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.open("a")
	one, other := b.control(), b.control()
	b.text("i")
	b.is("mode()", "i")
	ask := func(client *control.Client, message string) chan string {
		answer := make(chan string, 1)
		go func() {
			choice, _ := client.Ask(b.Context(), control.Question{Title: "Consent", Message: message, Choices: []string{"Yes", "No"}})
			if choice == nil {
				choice = new(string)
			}
			answer <- *choice
		}()
		return answer
	}
	gone := ask(one, "taken back")
	answer := ask(other, "may it run?")
	b.text("yes 1 ")
	b.is("getline(1)", "yes 1 a")
	b.pause(400)
	one.Close()
	<-gone
	b.pause(1000)
	b.text("y")
	b.is("getline(1) . mode()", "yes 1 yai")
	b.keys("Escape")
	b.until("the question", func() bool { return strings.Contains(b.tm.Screen(), "may it run?") })
	if strings.Contains(b.tm.Screen(), "taken back") {
		t.Error(b.tm.Screen())
	}
	b.text(map[string]string{"neovim": "2\r", "vim": "n"}[f.name])
	select {
	case got := <-answer:
		if got != "No" {
			t.Errorf("%q", got)
		}
	case <-time.After(patience):
		t.Fatal("no answer")
	}
	b.is("mode(1) . getline(1)", "nyes 1 ya")
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
