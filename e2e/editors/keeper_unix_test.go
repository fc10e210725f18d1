//go:build unix

package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/peers"
)

// TestKeeper: an editor is closed and opened again, and the CLI beside it keeps its companion (SPEC L-4).
func TestKeeper(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"closed and opened": closedAndOpened, "edited and left": editedAndLeft, "killed and left": killedAndLeft, "killed, rejected and left": killedRejectedAndLeft, "killed and stopped": killedAndStopped})
	t.Run("Gemini CLI", func(t *testing.T) {
		t.Parallel()
		keptCLI(t, neovim(t))
	})
}

// withKeeper makes a user whose CLIs are kept.
func (b *bench) withKeeper() { b.write("../c/pollux/config.json", `{"keep": true}`) }

// closedAndOpened: the edited proposal that waited is on show again, and so is one that came meanwhile.
func closedAndOpened(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "b": "b\n"})
	b.withKeeper()
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.shows("a", "new\n")
	b.types(1, "edited")
	b.until("the journal", func() bool { return b.journal("newedited") || b.journal("edited") })
	port := b.port()
	b.step("the editor is closed")
	keeper := b.leaves()
	a.OpenDiff(b.path("b"), "other\n")
	b.step("the editor is opened again")
	b.opensAgain(keeper, "a")
	if got := b.port(); got != port {
		t.Errorf("port %d became %d", port, got)
	}
	texts := map[string]string{"a": "newedited\n", "b": "other\n"}
	for len(texts) > 0 { // in whichever order they came
		file := ""
		b.until("a proposal", func() bool {
			place := b.eval(b.place())
			for name := range texts {
				if place == name+" <proposal>" {
					file = name
				}
			}
			return file != ""
		})
		b.shows(file, texts[file])
		b.accept()
		b.accepted(a, file, texts[file])
		delete(texts, file)
	}
}

// editedAndLeft: what was typed just before the editor was left is in the proposal as well.
func editedAndLeft(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.withKeeper()
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.shows("a", "new\n")
	b.step("the user types and leaves at once")
	b.jots(1, "edited")
	keeper := b.leaves()
	b.opensAgain(keeper, "a")
	b.shows("a", "new\nedited\n")
	b.accept()
	b.accepted(a, "a", "new\nedited\n")
}

// killedAndLeft: so is what was typed while the companion was away, which had been killed, also when the editor is left before it is back.
func killedAndLeft(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.withKeeper()
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.shows("a", "new\n")
	b.killsForGood()
	b.step("the user types and leaves at once")
	b.jots(1, "edited")
	keeper := b.leaves()
	b.opensAgain(keeper, "a")
	b.shows("a", "new\nedited\n")
	b.accept()
	b.accepted(a, "a", "new\nedited\n")
}

// killedRejectedAndLeft: what was typed and rejected while the companion was away is in the history, also when the editor is left at once
// (SPEC F-12).
func killedRejectedAndLeft(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.withKeeper()
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.shows("a", "new\n")
	b.killsForGood()
	b.step("the user types, rejects and leaves at once")
	b.jots(1, "edited")
	b.reject()
	b.abandons()
	b.tm.Exit(patience)
	b.until("the words in the history", func() bool { return b.history("edited") })
}

// What was typed after pollux was killed is kept when Kakoune is left before another one runs (SPEC L-3, L-4).
func TestKakouneLeftWhilePolluxIsDead(t *testing.T) {
	t.Parallel()
	f := kakoune(t)
	b := newBench(t, f, map[string]string{"a.txt": "a\n"})
	b.withKeeper()
	b.open("a.txt")
	a := b.connect()
	b.kakouneShows(a, "a.txt", "new\n")
	b.ex("set-option global idle_timeout 600000") // Kakoune would start another one
	b.kill(b.server(), syscall.SIGKILL)
	b.text("A typed since")
	b.normal()
	b.ex("kill!")
	b.tm.Exit(patience)
	b.hasKept("new typed since\n")
}

// What was typed in micro is kept as well: in a proposal that is open when micro is left, and in one that was rejected while pollux was dead.
func TestMicroLeft(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]bool{"at once": false, "while pollux is dead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, micro(t), map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
			b.withKeeper()
			b.write("../c/micro/bindings.json", `{"Alt-q": "QuitAll"}`)
			b.open("a.txt")
			a := b.connect()
			b.microShows(a, "b.txt", "other\n")
			old := b.stamp()
			if dead {
				b.kill(b.companion(), syscall.SIGKILL)
			}
			b.text("No, ")
			b.keys("C-q") // rejects
			b.off("b.txt (proposal)")
			if !dead {
				b.rejected(a, "b.txt")
			} else {
				b.until("another companion", func() bool {
					b.keys("Right") // a key starts it
					return len(b.files()) == 1 && b.stamp() != old && serves(b.file())
				})
			}
			b.until("the words in the history", func() bool { return b.history("No, other") })
			a = b.connect()
			b.microShows(a, "a.txt", "new\n")
			if dead {
				b.kill(b.companion(), syscall.SIGKILL)
				b.until("its end", func() bool { return !serves(b.file()) })
			}
			b.text("Typed ")
			b.keys("M-q")
			b.tm.Exit(patience)
			b.hasKept("Typed new\n")
		})
	}
}

// What was rejected in micro while pollux was dead is in the history, also when micro is left at once: before another pollux is started, and
// before that one is ready.
func TestMicroRejectsAndLeaves(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"at once": false, "while pollux starts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, micro(t), map[string]string{"a.txt": "a\n"})
			b.withKeeper()
			slow := b.path("../slow") // a pollux on a loaded machine
			b.write("../slow", "#!/bin/sh\necho begun >> '"+slow+".log'\nsleep 1\nexec '"+binary()+"' \"$@\"\n")
			if err := os.Chmod(slow, 0o700); err != nil {
				t.Fatal(err)
			}
			b.write("../c/micro/settings.json", `{"pollux.command": "`+slow+`"}`)
			b.open("a.txt")
			a := b.connect()
			b.microShows(a, "a.txt", "new\n")
			b.kill(b.companion(), syscall.SIGKILL)
			if begun {
				b.until("another one's start", func() bool {
					b.keys("Right") // a key starts it
					log, _ := os.ReadFile(slow + ".log")
					return strings.Count(string(log), "begun") == 2
				})
				b.keys("C-Home")
			}
			b.text("Typed ")
			b.keys("C-q", "C-q")
			b.tm.Exit(patience)
			b.until("the words in the history", func() bool { return b.history("Typed new") })
		})
	}
}

// killedAndStopped: pollux is stopped by hand while it is dead. Its view goes, as with one that lives, and what was typed is in the history.
func killedAndStopped(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n"})
	b.withKeeper()
	b.open("a")
	a := b.connect()
	a.OpenDiff(b.path("a"), "new\n")
	b.shows("a", "new\n")
	b.killsForGood()
	b.step("the user types and stops pollux")
	b.jots(1, "edited")
	if f.name == "emacs" {
		b.mx("pollux-mode")
	} else {
		b.command("pollux.stop")
	}
	b.calm("a")
	b.until("the words in the history", func() bool { return b.history("edited") })
	b.until("the end of pollux", func() bool { return len(b.files()) == 0 })
}

// killsForGood kills pollux so often that the editor waits for a while before it starts the next one. An editor waits longer each time.
func (b *bench) killsForGood() {
	b.Helper()
	pid := b.companion()
	for range 3 {
		b.kill(pid, syscall.SIGKILL)
		next := 0
		b.until("the next companion", func() bool {
			out, _ := exec.Command("pgrep", "-P", itoa(b.tm.PID()), "-x", "pollux").Output() // fails while there is none
			var err error
			next, err = strconv.Atoi(strings.TrimSpace(string(out)))
			return err == nil && next != pid && len(b.files()) == 1 && serves(b.file())
		})
		pid = next
		b.is(b.f.running, b.f.yes)
	}
	b.kill(pid, syscall.SIGKILL)
	b.until("the editor to notice", func() bool { return b.eval(b.f.running) != b.f.yes })
}

// keptCLI: the published CLI notices nothing. What waits is decided in the next editor, or in the CLI's terminal meanwhile, also
// what comes while there is no editor.
func keptCLI(t *testing.T, f flavour) {
	s := &seat{bench: newBench(t, f, map[string]string{"a.txt": "one\ntwo\n"}), m: model.Start(t)}
	s.withKeeper()
	s.equip(peers.Command(t, peers.Gemini))
	s.m.Script(prompt, writes("ONE"), writes("TWO"), writes("THREE"), writes("FOUR"))
	s.m.Script(secondPrompt, writes("FIVE"))
	s.open("a.txt")
	s.ctl = s.control()
	s.start(f.display)
	s.connects()
	s.proposed("ONE")

	s.ctl = s.leaves()
	s.connects()
	s.waits("ONE")
	s.opensAgain(s.ctl, "a.txt")
	s.ctl = s.control()
	s.connects()
	s.proposed("ONE")
	s.accept()
	s.hears("ONE", true)
	s.proposed("TWO")

	s.ctl = s.leaves()
	s.connects()
	s.waits("TWO")
	s.answer("TWO")
	s.waits("THREE")
	s.answer("THREE")
	s.waits("FOUR")
	s.opensAgain(s.ctl, "a.txt")
	s.ctl = s.control()
	s.connects()
	s.proposed("FOUR")
	s.accept()
	s.hears("FOUR", true)

	s.begin(2)
	s.done()
	s.knowsCursor()
	s.say(secondPrompt)
	s.proposed("FIVE")
	s.accept()
	s.hears("FIVE", true)
}

// leaves closes the editor, and returns the keeper that is there then.
func (b *bench) leaves() *control.Client {
	b.Helper()
	if b.f.name == "emacs" {
		b.keys("C-x", "C-c")
	} else {
		b.ex("qa!")
	}
	b.tm.Exit(patience)
	return b.keeper()
}

// opensAgain opens the editor, which takes over from the keeper.
func (b *bench) opensAgain(keeper *control.Client, file string) {
	b.Helper()
	b.until("the old editor's socket to go", func() bool {
		_, err := os.Stat(filepath.Join(b.root, "n"))
		return err != nil
	})
	b.open(file)
	b.until("the keeper's end", func() bool { return !alive(keeper.Status.PID) })
}

// hasKept waits until the keeper has one proposal, of this text.
func (b *bench) hasKept(text string) {
	b.Helper()
	keeper := b.keeper()
	b.until("the proposal in the keeper", func() bool {
		diffs, err := keeper.Diffs(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if len(diffs) != 1 {
			return false
		}
		now, _, err := keeper.Text(b.Context(), diffs[0].ID)
		return err == nil && now == text
	})
}

// waits waits until one proposal is open, which begins with a line.
func (s *seat) waits(line string) {
	s.Helper()
	s.untilWithin(cliPatience, "the proposal of "+line+" in the keeper", func() bool {
		diffs, err := s.ctl.Diffs(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		if len(diffs) != 1 {
			return false
		}
		text, _, err := s.ctl.Text(s.Context(), diffs[0].ID)
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
