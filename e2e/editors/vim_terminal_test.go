package editors

import (
	"os"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/control"
)

// Who types into a shell in :terminal keeps every key, also when a question
// waits; the diff comes when they pause, whatever the terminal's program says meanwhile.
func TestVimTerminal(t *testing.T) {
	t.Parallel()
	for _, f := range []flavour{neovim(t), vim(t)} {
		t.Run(f.display, func(t *testing.T) {
			t.Parallel()
			b, a := user(t, f, map[string]string{"a": "a\n"}, "a")
			b.setting("idle", "10000") // more than any machine takes from one key to the next
			b.ex(map[string]string{"neovim": "split | terminal sh", "vim": "terminal sh"}[f.name])
			b.is("&buftype", "terminal")
			if f.name == "neovim" {
				b.text("i")
			}
			b.is("mode()", "t")
			const keys = "keys of mine"
			asks := b.control()
			b.text("stty -icanon; dd bs=1 count=" + itoa(len(keys)) + " of=typed\r")
			b.until("the shell's program", func() bool { _, err := os.Stat(b.path("typed")); return err == nil })
			b.pause(10200) // nobody has typed for a while
			for i, key := range keys {
				b.text(string(key))
				b.until("the key "+string(key), func() bool { data, _ := os.ReadFile(b.path("typed")); return string(data) == keys[:i+1] })
				if i == 0 {
					go func() {
						_, _ = asks.Ask(b.Context(), control.Question{Title: "Consent", Message: "may it run?", Choices: []string{"Yes", "No"}})
					}()
					a.OpenDiff(b.path("a"), "new\n")
				}
				if got := b.eval("tabpagenr('$') . mode()"); got != "1t" {
					t.Fatalf("after %q tab pages and mode are %s", keys[:i+1], got)
				}
			}
			asks.Close()                                 // the question is taken back
			b.eval("extend(g:pollux, {'idle': 300})")    // what is typed goes to the shell
			b.is("&diff . getline(1) . mode()", "1newn") // now they pause
			b.ex("q")
			a.Outcome()
			b.is("&buftype . mode()", "terminalt") // and go on where they were

			b.text("for i in $(seq 2000); do echo tick; printf '\\r%s' $i; sleep .03; done\r")
			b.until("its output", func() bool { return strings.Count(b.tm.Screen(), "tick") > 9 })
			a.OpenDiff(b.path("a"), "new\n")
			b.is("&diff . getline(1) . mode()", "1newn")
			b.ex("Pollux accept")
			a.Outcome()
			b.is("&buftype . mode()", "terminalt")
		})
	}
}

// C-6: a CLI that was started by hand in :terminal has the file that the user
// was in, as soon as it is there, and gets what :Pollux send types; the shell
// before it, and other programs, have none.
func TestVimTerminalCLI(t *testing.T) {
	t.Parallel()
	for _, f := range []flavour{neovim(t), vim(t)} {
		t.Run(f.display, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, f, map[string]string{"a": "one\ntwo\n", "../bin/gemini": "#!/bin/sh\necho here > \"$HOME/cli\"\nread -r line\nrm \"$HOME/cli\"\n"})
			if err := os.Chmod(b.path("../bin/gemini"), 0o700); err != nil {
				t.Fatal(err)
			}
			b.open("a")
			a := b.connect()
			b.text("2Gll")
			b.sees(a, "a 2:3")
			b.ex(map[string]string{"neovim": "split | terminal", "vim": "terminal"}[f.name])
			if f.name == "neovim" {
				b.text("i")
			}
			b.is("mode()", "t")
			b.sees(a, "none")
			b.text("exec 2>&1; ../bin/gemini\r")
			b.until("the CLI", func() bool { _, err := os.Stat(b.path("../cli")); return err == nil })
			b.sees(b.connect(), "a 2:3") // another session, as the CLI's own
			if f.name == "neovim" {
				b.keys("C-\\", "C-n")
				b.is("mode(1)", "nt")
				b.text(":wincmd p\r")
			} else {
				b.keys("C-w", "p")
			}
			b.is("expand('%')", "a")
			b.ex("1,2Pollux send")
			b.tm.Wait("@a lines 1-2", patience) // in the shell's own folder
			b.keys("C-w", "p")
			b.is("&buftype", "terminal")
			if f.name == "neovim" {
				b.text("i")
			}
			b.is("mode()", "t")
			b.text("\rsleep 60\r")
			b.until("the CLI's end", func() bool { _, err := os.Stat(b.path("../cli")); return err != nil })
			b.pause(1200)
			b.sees(b.connect(), "none")
		})
	}
}
