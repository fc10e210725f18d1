package editors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// hands are what a user does in one editor.
type hands struct {
	open    func(b *bench)        // puts the cursor into the second line of a.txt
	visible func(b *bench) bool   // a diff is on show, with the cursor in its proposal
	edit    func(b *bench)        // puts "edited" at the end of the first line
	accept  func(b *bench)        // accepts
	reject  func(b *bench)        // rejects
	calm    func(b *bench)        // no diff is on show any more
	text    func(b *bench) string // the buffer of a.txt
	run     func(b *bench)        // starts the CLI in the editor's own terminal
}

func vimHands() hands {
	return hands{
		open:    func(b *bench) { b.text("2G"); b.is("line('.')", "2") },
		visible: func(b *bench) bool { return b.eval("&diff . winnr()") == "12" },
		edit:    func(b *bench) { b.text("ggAedited"); b.escape() },
		accept:  func(b *bench) { b.ex("w") },
		reject:  func(b *bench) { b.ex("q") },
		calm:    func(b *bench) { b.is("&diff . tabpagenr('$')", "01") },
		text:    func(b *bench) string { return b.eval("join(getbufline('a.txt', 1, '$'), '|')") },
		run:     func(b *bench) { b.ex("Pollux run") },
	}
}

func emacsHands() hands {
	return hands{
		open:    func(b *bench) { b.keys("C-n"); b.is("(line-number-at-pos)", "2") },
		visible: func(b *bench) bool { return b.eval(windows) == "(3 a.txt <proposal>)" },
		edit:    func(b *bench) { b.keys("C-e"); b.text("edited") },
		accept:  func(b *bench) { b.keys("C-c", "C-c") },
		reject:  func(b *bench) { b.keys("C-c", "C-k") },
		calm:    func(b *bench) { b.is(windows, "(1 a.txt)") },
		text: func(b *bench) string {
			return b.eval(`(with-current-buffer "a.txt" (replace-regexp-in-string "\n" "|" (string-trim-right (buffer-string))))`)
		},
		run: func(b *bench) { b.keys("M-x"); b.text("pollux-run\r") },
	}
}

// equip gives the user of a bench the CLI's settings.
func (b *bench) equip() cli.Home {
	b.Helper()
	from, to := cli.NewHome(b), cli.Home{Dir: b.root, Tmp: filepath.Join(b.root, "t")}
	if err := os.CopyFS(filepath.Join(to.Dir, ".gemini"), os.DirFS(filepath.Join(from.Dir, ".gemini"))); err != nil {
		b.Fatal(err)
	}
	return to
}

// The published CLI in a terminal of its own beside each editor: it connects,
// the model hears of the cursor, and every decision arrives.
func TestCLI(t *testing.T) {
	peers.Need(t, peers.Gemini)
	for name, e := range map[string]struct {
		flavour func(*testing.T) flavour
		hands   hands
	}{"Neovim": {neovim, vimHands()}, "Vim": {vim, vimHands()}, "Emacs": {emacs, emacsHands()}} {
		t.Run(name, func(t *testing.T) {
			b, h := newBench(t, e.flavour(t), map[string]string{"a.txt": "one\ntwo\n"}), e.hands
			home := b.equip()
			b.open("a.txt")
			h.open(b)
			s := cli.Start(t, home, b.project)
			s.Status("Connected to " + name)
			r := s.Ask("write it please", model.WriteFile("a.txt", "ONE\ntwo\n"))
			if c := r.Context(); c == nil || c.ActiveFile == nil || c.ActiveFile.Path != b.path("a.txt") || c.ActiveFile.Cursor == nil || c.ActiveFile.Cursor.Line != 2 {
				t.Errorf("the model sees %+v", c)
			}
			b.until("the diff", func() bool { return h.visible(b) })
			s.Question()
			h.edit(b)
			h.accept(b)
			h.calm(b)
			b.until("the buffer", func() bool { return h.text(b) == "ONEedited|two" })
			s.Idle()

			s.Ask("again please", model.WriteFile("a.txt", "bad\n"))
			b.until("the diff", func() bool { return h.visible(b) })
			s.Question()
			h.reject(b)
			h.calm(b)
			s.Wait("Request cancelled", patience)

			s.Ask("and once more", model.WriteFile("a.txt", "from the terminal\n"))
			b.until("the diff", func() bool { return h.visible(b) })
			s.Question()
			s.Keys("Enter") // "allow once", in the CLI
			h.calm(b)
			b.until("the buffer", func() bool { return h.text(b) == "from the terminal" })
			if data, err := os.ReadFile(b.path("a.txt")); err != nil || string(data) != "from the terminal\n" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}

// The CLI in the editor's own terminal finds its editor, and no other.
func TestOwnTerminal(t *testing.T) {
	gemini := peers.Command(t, peers.Gemini)
	for name, e := range map[string]struct {
		flavour func(*testing.T) flavour
		hands   hands
	}{"Neovim": {neovim, vimHands()}, "Vim": {vim, vimHands()}, "Emacs": {emacs, emacsHands()}} {
		t.Run(name, func(t *testing.T) {
			b, h := newBench(t, e.flavour(t), map[string]string{"a.txt": "one\ntwo\n"}), e.hands
			b.equip()
			m := model.Start(t)
			b.env = append(b.env, cli.Variables(m)...)
			bin := filepath.Join(b.root, "bin")
			script := "#!/bin/sh\nexec '" + strings.Join(gemini, "' '") + "' \"$@\"\n"
			if err := os.Mkdir(bin, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bin, "gemini"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			b.env = append(b.env, "PATH="+bin+":"+filepath.Dir(binary())+":"+os.Getenv("PATH"))
			b.open("a.txt")
			h.open(b)
			h.run(b)
			s := cli.Attach(t, m, b.tm)
			s.Ready()
			s.Status("Connected to " + name)
			r := s.Ask("hello please")
			if c := r.Context(); c == nil || c.ActiveFile == nil || c.ActiveFile.Path != b.path("a.txt") {
				t.Errorf("the model sees %+v", c)
			}
		})
	}
}
