package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// reviewer starts pollux review in a terminal and waits until it counts as somebody who looks.
func (b *bench) reviewer(columns, rows int, env ...string) *terminal.Terminal {
	b.t.Helper()
	tm := terminal.Start(b.t, terminal.Options{
		Dir: b.dir, Env: b.home.Env(env...), Args: []string{shared.pollux, "review"}, Columns: columns, Rows: rows,
	})
	tm.Wait("Nothing waits for you.", second(60))
	return tm
}

// shows waits until the screen is the golden one. With -update it waits until the screen has stood still, holding
// what is said, and keeps it.
func (b *bench) shows(tm *terminal.Terminal, name string, holds ...string) {
	b.t.Helper()
	file := filepath.Join("testdata", "review", name+".txt")
	if *update {
		b.keepScreen(tm, file, holds)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatalf("%v; run with -update", err)
	}
	got := ""
	for deadline := time.Now().Add(second(60)); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got = b.normalScreen(tm.Screen()); got == string(want) {
			return
		}
	}
	b.t.Fatalf("%s (-want +got):\n%s", file, cmp.Diff(string(want), got))
}

func (b *bench) keepScreen(tm *terminal.Terminal, file string, holds []string) {
	b.t.Helper()
	last, since := "", time.Now()
	screen := tm.Until(strings.Join(holds, ", "), second(60), func(screen string) bool {
		if screen != last {
			last, since = screen, time.Now()
		}
		for _, h := range holds {
			if !strings.Contains(screen, h) {
				return false
			}
		}
		return time.Since(since) > time.Second
	})
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.normalScreen(screen)), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// normalScreen is a screen without what is another one each time: the name of the folder, and with it the blanks of its line.
func (b *bench) normalScreen(screen string) string {
	blanks := regexp.MustCompile(` {2,}`)
	var out strings.Builder
	for l := range strings.Lines(screen) {
		if strings.Contains(l, b.dir) {
			l = blanks.ReplaceAllString(strings.ReplaceAll(l, b.dir, "DIR"), "  ")
		}
		out.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	return out.String()
}

const greeter = `package main

import "fmt"

// main greets the 世界.
func main() {
	name := "world"
	fmt.Println("hello", name)
	for i := range 10 {
		fmt.Println(i)
	}
	fmt.Println("one")
	fmt.Println("two")
	fmt.Println("three")
	fmt.Println("four")
	fmt.Println("five")
	fmt.Println("six")
	fmt.Println("end")
}
`

// TestReviewScreens: the reviewer as it stands in a real terminal, without any other view of the companion (F-5, F-11, F-12).
func TestReviewScreens(t *testing.T) {
	for name, size := range map[string][2]int{"80x24": {80, 24}, "160x50": {160, 50}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers.Need(t, peers.Tmux)
			b := newBench(t, map[string]string{"src/main.go": greeter, "dos.txt": "one\r\ntwo\r\n"})
			a := agent.Start(t, b.serve().DiscoveryFile)
			tm := b.reviewer(size[0], size[1])
			step := func(screen string, holds ...string) {
				t.Helper()
				b.shows(tm, name+"/"+screen, holds...)
			}
			step("empty", "1 CLI")
			proposed := strings.NewReplacer("world", "moon", "\tfmt.Println(\"two\")\n", "", "\"end\"", "\"the end\"").Replace(greeter)
			a.OpenDiff(b.path("src/main.go"), proposed)
			step("diff", "+2 −3 · hunk 1/3")
			tm.Keys("n", "x")
			step("hunk", "hunk 2/3 reverted")
			tm.Keys("?")
			step("help", "accept what is shown")
			tm.Keys("q")
			a.OpenDiff(b.path("dos.txt"), "one\r\n2\r\n\x1b[31mred\u202e\r\n")
			step("queue", "dos.txt", "2 wait")
			tm.Keys("Tab")
			step("hostile", "CRLF", "hunk 1/1")
			tm.Keys("A")
			step("policy", "Policy")
			tm.Keys("q")
			tm.Wait("hunk 1/1", second(60))
			// A change of the size and back leaves nothing behind.
			tm.Resize(size[0]-17, size[1]-5)
			tm.Resize(size[0], size[1])
			step("hostile", "CRLF", "hunk 1/1")
			tm.Keys("r")
			if o := a.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != b.path("dos.txt") {
				t.Errorf("%+v", o)
			}
			tm.Wait("hunk 1/3 · edited", second(60))
			b.press(tm, "a", "Nothing waits")
			if o := a.Outcome(); o.Content != strings.NewReplacer("world", "moon", "\"end\"", "\"the end\"").Replace(greeter) {
				t.Errorf("%+v", o)
			}
			tm.Keys("q")
			if code := tm.Exit(second(60)); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// press presses a key until the screen shows a text: the first press may come too early to be meant, which the reviewer
// says. It is not repeated lightly, since another program may have the terminal by then.
func (b *bench) press(tm *terminal.Terminal, key, shows string) {
	b.t.Helper()
	tm.Keys(key)
	pressed, again := time.Now(), false
	tm.Until(shows, second(60), func(screen string) bool {
		if strings.Contains(screen, shows) {
			return true
		}
		early := !again && strings.Contains(screen, "has only just come up") && time.Since(pressed) > 500*time.Millisecond
		if early || time.Since(pressed) > second(15) {
			tm.Keys(key)
			pressed, again = time.Now(), true
		}
		return false
	})
}

// TestReviewCLI: the real CLI's changes, decided in the reviewer, with the history's undo; and what is decided in the CLI
// is gone here (F-3, F-10, F-12).
func TestReviewCLI(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\n"})
	b.serve()
	tm := b.reviewer(120, 40)
	s := b.gemini("")
	connected(s)

	from := len(s.Model.Requests())
	s.Ask("change the second line", model.WriteFile("a.txt", "one\n2\n"))
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	b.press(tm, "a", "Nothing waits")
	b.holds("a.txt", "one\n2\n")
	result(t, s, from)

	s.Ask("change it again", model.WriteFile("a.txt", "one\n3\n"))
	s.Question()
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	s.Keys("Enter") // once, in the terminal
	b.holds("a.txt", "one\n3\n")
	tm.Wait("Nothing waits", second(60))

	tm.Keys("h")
	tm.Wait("before and after", second(60))
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	tm.Keys("u")
	tm.Wait("the text back that it had before?", second(60))
	tm.Keys("y")
	b.holds("a.txt", "one\n2\n")
}

// TestPauseKeys: one key pauses and one resumes sharing, on the page, also from inside of a text, and in the reviewer; each says what the
// other has done (C-8).
func TestPauseKeys(t *testing.T) {
	peers.Need(t, peers.Tmux)
	t.Parallel()
	b := newBench(t, map[string]string{"a.txt": "one\n"})
	d := b.desk(b.serve())
	tm := b.reviewer(120, 24)
	paused := func(want bool) {
		t.Helper()
		b.until(fmt.Sprintf("paused: %v", want), func() bool { return strings.Contains(b.pollux("status"), "sharing is paused") == want })
	}
	tm.Wait("p pause sharing", second(60))
	tm.Keys("p")
	tm.Wait("p resume sharing", second(60))
	paused(true)
	d.WaitText(browser.ID("status-troubles"), "1 problem")
	d.open("a.txt")
	d.Press("Alt+p")
	paused(false)
	tm.Wait("p pause sharing", second(60))
	d.Press("Alt+p")
	paused(true)
	tm.Wait("p resume sharing", second(60))
	tm.Keys("p")
	tm.Wait("p pause sharing", second(60))
	paused(false)
	if text := b.read("a.txt"); text != "one\n" {
		t.Errorf("the key wrote into the file: %q", text)
	}
}

// TestReviewEditor: $EDITOR on the proposal, in the same terminal (F-6).
func TestReviewEditor(t *testing.T) {
	peers.Need(t, peers.Tmux)
	t.Parallel()
	b := newBench(t, map[string]string{"a.txt": "one\n"})
	a := agent.Start(t, b.serve().DiscoveryFile)
	b.write("editor", "#!/bin/sh\ntest -t 0 && test -t 1 && sed -i s/two/zwei/ \"$2\"\n")
	if err := os.Chmod(b.path("editor"), 0o700); err != nil {
		t.Fatal(err)
	}
	tm := b.reviewer(80, 24, "EDITOR="+b.path("editor")+" --wait")
	a.OpenDiff(b.path("a.txt"), "one\ntwo")
	tm.Wait("+1 −0", second(60))
	b.press(tm, "e", "zwei")
	b.press(tm, "a", "Nothing waits")
	if o := a.Outcome(); o.Content != "one\nzwei" {
		t.Errorf("%+v", o)
	}
}

// TestReviewEditorOutlivesCompanion: what the user writes in $EDITOR while the companion crashes and comes back is the
// proposal's text then, and goes to the agent that proposed it (L-3).
func TestReviewEditorOutlivesCompanion(t *testing.T) {
	peers.Need(t, peers.Tmux)
	t.Parallel()
	b := newBench(t, map[string]string{"a.txt": "one\n"})
	c := b.serve()
	a := agent.Start(t, c.DiscoveryFile)
	b.write("editor", "#!/bin/sh\necho > started\nwhile test ! -e leave; do sleep 0.1; done\necho mine > \"$1\"\n")
	if err := os.Chmod(b.path("editor"), 0o700); err != nil {
		t.Fatal(err)
	}
	tm := b.reviewer(80, 24, "EDITOR="+b.path("editor"))
	a.OpenDiff(b.path("a.txt"), "two\n")
	tm.Wait("+1 −1", second(60))
	tm.Keys("e")
	b.until("the editor runs", func() bool { _, err := os.Stat(b.path("started")); return err == nil })
	b.journal("two")
	c.end(syscall.SIGKILL)
	if again := b.serve(); !again.Resumed {
		t.Fatal("it has not taken over")
	}
	b.write("leave", "")
	tm.Wait("+ mine", second(60))
	b.press(tm, "a", "Nothing waits")
	if o := a.Outcome(); o.Method != "ide/diffAccepted" || o.Content != "mine\n" {
		t.Errorf("%+v", o)
	}
}

// TestReviewDisk: a proposal follows its file. What goes together is merged and shown; where both changed the same line
// nothing is accepted until the user has said which stands (F-13).
func TestReviewDisk(t *testing.T) {
	const rest = "two\nthree\nfour\nfive\nsix\nseven\neight\n"
	proposal := func(t *testing.T) (*bench, *agent.Agent, *terminal.Terminal) {
		t.Helper()
		peers.Need(t, peers.Tmux)
		t.Parallel()
		b := newBench(t, map[string]string{"a.txt": "one\n" + rest + "nine\n"})
		a := agent.Start(t, b.serve().DiscoveryFile)
		tm := b.reviewer(80, 24)
		a.OpenDiff(b.path("a.txt"), "one\n"+rest+"NINE\n")
		tm.Wait("+1 −1 · hunk 1/1", second(60))
		return b, a, tm
	}
	t.Run("merged", func(t *testing.T) {
		b, a, tm := proposal(t)
		b.write("a.txt", "ONE\n"+rest+"nine\n")
		tm.Wait("hunk 1/1 · edited", second(60))
		tm.Wait("a.txt has changed on disk; this is the proposal on what it holds now", second(60))
		b.press(tm, "a", "Nothing waits")
		expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "ONE\n" + rest + "NINE\n"})
	})
	for key, line := range map[string]string{"k": "NINE\n", "t": "neuf\n"} { // keep, take
		t.Run("conflict "+key, func(t *testing.T) {
			b, a, tm := proposal(t)
			b.write("a.txt", "ONE\n"+rest+"neuf\n")
			tm.Wait("a.txt: the file has changed on disk where the proposal changes it", second(60))
			tm.Wait("!    9 + NINE", second(60))
			b.press(tm, "a", "On disk: neuf")
			tm.Keys("n")
			tm.Wait("a keep or take  r reject", second(60))
			a.Quiet()
			b.press(tm, "a", "On disk: neuf")
			b.press(tm, key, "a accept  r reject")
			a.Quiet() // that was no acceptance
			b.press(tm, "a", "Nothing waits")
			expect(t, a, agent.Outcome{Method: accepted, FilePath: b.path("a.txt"), Content: "ONE\n" + rest + line})
		})
	}
}

// TestReviewGivesTheTerminalBack: stopped by Ctrl-Z, taken up again, and ended by a signal, the reviewer leaves the
// terminal as it was.
func TestReviewGivesTheTerminalBack(t *testing.T) {
	peers.Need(t, peers.Tmux)
	t.Parallel()
	b := newBench(t, nil)
	b.serve()
	const script = `stty -g >before; set -m
sh -c 'echo $$ >pid.part; mv pid.part pid; exec "$0" review' "$0"
stty -g >stopped.part; mv stopped.part stopped; read line
fg >/dev/null
stty -g >after.part; mv after.part after; read line`
	tm := terminal.Start(t, terminal.Options{Dir: b.dir, Env: b.home.Env(), Args: []string{"sh", "-c", script, shared.pollux}})
	tm.Wait("Nothing waits for you.", second(60))
	left := func(name string) {
		t.Helper()
		b.until("the file "+name, func() bool { _, err := os.Stat(b.path(name)); return err == nil })
		if b.read(name) != b.read("before") {
			t.Errorf("%s: the terminal is %s, it was %s", name, b.read(name), b.read("before"))
		}
		b.until("the end of the reviewer's screen", func() bool { return !strings.Contains(tm.Screen(), "Nothing waits") })
	}
	tm.Keys("C-z")
	left("stopped")
	tm.Keys("Enter")
	tm.Wait("Nothing waits for you.", second(60))
	pid, err := strconv.Atoi(strings.TrimSpace(b.read("pid")))
	if err != nil {
		t.Fatal(err)
	}
	reviewer, err := os.FindProcess(pid)
	if err == nil {
		err = reviewer.Signal(syscall.SIGTERM)
	}
	if err != nil {
		t.Fatal(err)
	}
	left("after")
}

// TestRunReview: command and reviewer share a terminal, by turns and in two panes.
func TestRunReview(t *testing.T) {
	t.Run("screen", func(t *testing.T) {
		needCLI(t)
		b := newBench(t, map[string]string{"a.txt": "one\ntwo\n"})
		m := model.Start(t)
		tm := terminal.Start(t, terminal.Options{
			Dir: b.dir, Env: b.home.Env(cli.Variables(m)...),
			Args: append([]string{shared.pollux, "run", "--review=screen", "--"}, peers.Command(t, peers.Gemini)...),
		})
		s := cli.Attach(t, m, tm)
		s.Ready()
		connected(s)
		s.Ask("change the second line", model.WriteFile("a.txt", "one\n2\n"))
		tm.Wait("+1 −1 · hunk 1/1", second(60))
		b.press(tm, "a", "Type your message")
		b.holds("a.txt", "one\n2\n")
		s.Idle()
		tm.Keys("C-]")
		tm.Wait("Nothing waits for you.", second(60))
		tm.Keys("q")
		tm.Wait("Type your message", second(60))
		s.Ask("and once more", model.WriteFile("a.txt", "one\n3\n"))
		tm.Wait("+1 −1 · hunk 1/1", second(60))
		tm.Keys("q") // put off
		tm.Wait("Apply this change?", second(60))
		s.Keys("Enter")
		b.holds("a.txt", "one\n3\n")
	})
	t.Run("split", func(t *testing.T) {
		peers.Need(t, peers.Tmux)
		t.Parallel()
		b := newBench(t, map[string]string{"a.txt": "one\n"})
		tm := terminal.Start(t, terminal.Options{
			Dir: b.dir, Env: b.home.Env(), Args: []string{shared.pollux, "run", "--review", "--", "sh", "-c", "read line; exit 7"},
		})
		reviewer := tm.Pane(1)
		reviewer.Wait("Nothing waits for you.", second(60))
		tm.Keys("Enter")
		if code := tm.Exit(second(60)); code != 7 {
			t.Errorf("exit code %d", code)
		}
	})
}
