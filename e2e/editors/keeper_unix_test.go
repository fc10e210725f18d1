//go:build unix

package editors

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/peers"
)

// The editor is closed and opened again, twice: the CLI beside it never loses its companion. A proposal that waits is on show in
// the next editor, or answered in the terminal meanwhile, also one that comes while there is no editor (SPEC L-4).
func TestKeeper(t *testing.T) {
	gemini := peers.Command(t, peers.Gemini)
	for name, e := range map[string]struct {
		flavour func(*testing.T) flavour
		hands   hands
		leave   func(*bench)
	}{
		"Neovim": {neovim, vimHands(), func(b *bench) { b.ex("qa!") }},
		"Vim":    {vim, vimHands(), func(b *bench) { b.ex("qa!") }},
		"Emacs":  {emacs, emacsHands(), func(b *bench) { b.keys("C-x", "C-c") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &seat{bench: newBench(t, e.flavour(t), map[string]string{"a.txt": "one\ntwo\n"}), h: e.hands, m: model.Start(t)}
			s.write("../c/pollux/config.json", `{"keep": true}`)
			s.equip(gemini)
			s.m.Script(prompt, writes("ONE"), writes("TWO"), writes("THREE"), writes("FOUR"))
			s.m.Script(secondPrompt, writes("FIVE"))
			s.open("a.txt")
			s.ctl = s.control()
			s.start(name)
			s.connects()
			s.shows("ONE")
			port := s.port()

			keeper := s.leaves(e.leave)
			s.proposed(keeper, "ONE")
			s.returns(keeper)
			if got := s.port(); got != port {
				t.Errorf("the companion is at port %d, and was at %d", got, port)
			}
			s.shows("ONE")
			s.h.accept(s.bench)
			s.hears("ONE", true)
			s.shows("TWO")

			keeper = s.leaves(e.leave)
			s.proposed(keeper, "TWO")
			s.answer("TWO")
			s.proposed(keeper, "THREE")
			s.answer("THREE")
			s.proposed(keeper, "FOUR")

			s.returns(keeper)
			s.shows("FOUR")
			s.h.accept(s.bench)
			s.hears("FOUR", true)
			s.h.cursor(s.bench)
			s.knowsCursor()
			s.say(secondPrompt)
			s.shows("FIVE")
			s.h.accept(s.bench)
			s.hears("FIVE", true)
			if !slices.ContainsFunc(s.m.Requests(), func(r *model.Request) bool { return strings.Contains(r.ContextText(), `"line": 2`) }) {
				t.Error("the model never hears of the cursor in the new editor")
			}
		})
	}
}

// leaves closes the editor, and returns the keeper that is there then, with the CLI's session.
func (s *seat) leaves(leave func(*bench)) *control.Client {
	s.Helper()
	begun := time.Now()
	leave(s.bench)
	s.tm.Exit(patience)
	s.Logf("the editor has ended after %v", time.Since(begun))
	s.ctl = s.keeper()
	s.connects()
	return s.ctl
}

// returns opens the editor again, which takes over from the keeper.
func (s *seat) returns(keeper *control.Client) {
	s.Helper()
	s.untilWithin(patience, "the socket of the old editor to go", func() bool {
		_, err := os.Stat(filepath.Join(s.root, "n"))
		return err != nil
	})
	s.open("a.txt")
	s.until("the end of the keeper", func() bool { return !alive(keeper.Status.PID) })
	s.ctl = s.control()
	s.connects()
}

// proposed waits until the keeper has one proposal, which begins with a line.
func (s *seat) proposed(keeper *control.Client, line string) {
	s.Helper()
	s.untilWithin(cliPatience, "the proposal of "+line+" in the keeper", func() bool {
		diffs, err := keeper.Diffs(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		if len(diffs) != 1 {
			return false
		}
		text, _, err := keeper.Text(s.Context(), diffs[0].ID)
		return err == nil && text == line+"\ntwo\n"
	})
}

// answer allows a change in the CLI's terminal.
func (s *seat) answer(line string) {
	s.Helper()
	var pressed time.Time
	s.untilWithin(cliPatience, "the answer about "+line, func() bool {
		data, err := os.ReadFile(s.path("a.txt"))
		if err == nil && string(data) == line+"\ntwo\n" {
			return true
		}
		if time.Since(pressed) > 10*time.Second {
			s.keys.Keys("Enter")
			pressed = time.Now()
		}
		return false
	})
}

// keeper waits for the keeper, which serves alone then.
func (b *bench) keeper() (client *control.Client) {
	b.Helper()
	dirs := []string{filepath.Join(b.root, "r", "pollux"), filepath.Join(b.root, "s", "pollux", "run")}
	b.until("the keeper", func() bool {
		all := control.List(b.Context(), dirs)
		for _, c := range all {
			if len(all) == 1 && c.Status.Keeper {
				client = c
			} else {
				c.Close()
			}
		}
		return client != nil
	})
	b.Cleanup(client.Close)
	b.Cleanup(func() { _ = syscall.Kill(client.Status.PID, syscall.SIGTERM) })
	return client
}
