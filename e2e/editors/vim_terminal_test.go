package editors

import (
	"os"
	"strings"
	"testing"
)

// Who types into a shell in :terminal keeps every key; the diff comes when
// they pause, whatever the terminal's program says meanwhile.
func TestVimTerminal(t *testing.T) {
	t.Parallel()
	for _, f := range []flavour{neovim(t), vim(t)} {
		t.Run(f.display, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, f, map[string]string{"a": "a\n"})
			b.open("a")
			a := b.connect()
			b.setting("idle", "10000") // more than any machine takes from one key to the next
			b.ex(map[string]string{"neovim": "split | terminal sh", "vim": "terminal sh"}[f.name])
			b.is("&buftype", "terminal")
			if f.name == "neovim" {
				b.text("i")
			}
			b.is("mode()", "t")
			const keys = "keys of mine"
			b.text("stty -icanon; dd bs=1 count=" + itoa(len(keys)) + " of=typed\r")
			b.until("the shell's program", func() bool { _, err := os.Stat(b.path("typed")); return err == nil })
			b.pause(10200) // nobody has typed for a while
			for i, key := range keys {
				b.text(string(key))
				b.until("the key "+string(key), func() bool { data, _ := os.ReadFile(b.path("typed")); return string(data) == keys[:i+1] })
				if i == 0 {
					a.OpenDiff(b.path("a"), "new\n")
				}
				if got := b.eval("tabpagenr('$') . mode()"); got != "1t" {
					t.Fatalf("after %q tab pages and mode are %s", keys[:i+1], got)
				}
			}
			b.eval("extend(g:pollux, {'idle': 300})")    // what is typed goes to the shell
			b.is("&diff . getline(1) . mode()", "1newn") // now they pause
			b.ex("q")
			a.Outcome()
			b.is("&buftype . mode()", "terminalt") // and go on where they were

			b.text("while :; do echo tick; sleep .03; done & while :; do printf '\\r%s' \"$(date +%N)\"; sleep .02; done\r")
			b.until("its output", func() bool { return strings.Count(b.tm.Screen(), "tick") > 9 })
			a.OpenDiff(b.path("a"), "new\n")
			b.is("&diff . getline(1) . mode()", "1newn")
			b.ex("Pollux accept")
			a.Outcome()
			b.is("&buftype . mode()", "terminalt")
		})
	}
}
