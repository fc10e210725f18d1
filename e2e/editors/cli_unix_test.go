//go:build unix

package editors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/peers"
)

// cliPatience is for what the CLI may take on a loaded machine.
const cliPatience = 120 * time.Second

// A seat is the published CLI beside an editor: in the editor's own terminal,
// or in one of its own. What the test waits for is never what the CLI shows,
// but what lasts: files, the editor's state, what the model was told and
// what the CLI writes down of its conversation.
type seat struct {
	*bench
	own  bool
	m    *model.Server
	ctl  *control.Client    // of the companion
	keys *terminal.Terminal // takes what is typed for the CLI
}

// The published CLI in each editor's own terminal and in a foreign one: it
// connects, the model hears of the cursor, and every decision arrives, made
// in the editor or in the CLI (SPEC F-10). The CLI writes, the editor never does (F-8).
func TestCLI(t *testing.T) {
	gemini := peers.Command(t, peers.Gemini)
	play(t, map[string]func(*testing.T, flavour){
		"own terminal":        func(t *testing.T, f flavour) { besideCLI(t, f, gemini, true) },
		"foreign terminal":    func(t *testing.T, f flavour) { besideCLI(t, f, gemini, false) },
		"mentioned elsewhere": func(t *testing.T, f flavour) { mentionedElsewhere(t, f, gemini) },
	})
}

func besideCLI(t *testing.T, f flavour, gemini []string, own bool) {
	s := &seat{bench: newBench(t, f, map[string]string{"a.txt": "one\ntwo\n"}), own: own, m: model.Start(t)}
	s.equip(gemini)
	s.m.Script(prompt, writes("ONE"), writes("TWO"), writes("THREE"), writes("FOUR"))
	s.m.Script(secondPrompt, writes("FIVE"))
	s.open("a.txt")
	s.ctl = s.control()
	s.begin(2)
	s.done()
	s.knowsCursor()
	s.start(f.display)
	s.connects()
	s.decide()
}

const prompt, secondPrompt = "write it please", "again please"

// writes is a turn that replaces the file's first line.
func writes(line string) model.Turn { return model.WriteFile("a.txt", line+"\ntwo\n") }

// equip gives the user the CLI and its settings. The command says which
// process it is.
func (s *seat) equip(gemini []string) {
	s.Helper()
	home := cli.NewHome(s)
	if err := os.CopyFS(filepath.Join(s.root, ".gemini"), os.DirFS(filepath.Join(home.Dir, ".gemini"))); err != nil {
		s.Fatal(err)
	}
	s.script("gemini", "echo $$ >'"+s.root+"/pid'\nexec '"+strings.Join(gemini, "' '")+"' \"$@\"\n")
	s.env = append(s.env, cli.Variables(s.m)...)
}

// start runs the CLI with the first prompt.
func (s *seat) start(name string) {
	s.Helper()
	if s.own {
		s.keys = s.tm
		s.run(prompt)
		return
	}
	s.startElsewhere(name).Ask(prompt, writes("ONE"), writes("TWO"), writes("THREE"), writes("FOUR"))
}

// startElsewhere runs the CLI in a terminal of its own, a pane of tmux, until it is connected.
func (s *seat) startElsewhere(name string) *cli.Session {
	s.Helper()
	env := append(cli.Home{Dir: s.root, Tmp: s.root + "/t"}.Env(), cli.Variables(s.m)...)
	// Below a shell: tmux itself would wake what the test stops.
	s.keys = terminal.Start(s, terminal.Options{Dir: s.project, Env: env, Args: []string{"/bin/sh", "-c", s.root + "/bin/gemini; true"}})
	session := cli.Attach(s, s.m, s.keys)
	session.Ready()
	session.Status("Connected to " + name)
	return session
}

// mentionedElsewhere: what the user mentions is typed into the CLI's pane, without Enter.
func mentionedElsewhere(t *testing.T, f flavour, gemini []string) {
	s := &seat{bench: newBench(t, f, map[string]string{"a.txt": "one\ntwo\n"}), m: model.Start(t)}
	s.equip(gemini)
	s.open("a.txt")
	s.ctl = s.control()
	s.startElsewhere(f.display)
	s.connects()
	s.command("pollux.send")
	s.keys.Wait("@a.txt", cliPatience)
	s.says("press Enter there (typed by tmux)")
	if n := len(s.m.Requests()); n > 0 {
		s.Errorf("the model was asked %d times", n)
	}
}

// connects waits until the companion has the CLI's one session.
func (s *seat) connects() {
	s.Helper()
	s.untilWithin(cliPatience, "the CLI's session", func() bool {
		all, err := s.ctl.Sessions(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		return len(all) == 1
	})
}

// decide is the user's part.
func (s *seat) decide() {
	s.Helper()
	s.proposed("ONE")
	s.stop() // so that nobody but the editor could write
	s.accept()
	s.returns()
	s.settled("accepted")
	s.pause(200)
	s.holds("one")
	s.goOn()
	s.hears("ONE", true)
	s.holds("ONE")

	s.proposed("TWO")
	s.types(1, "edited")
	s.accept()
	s.hears("TWOedited", true)
	s.holds("TWOedited")

	s.proposed("THREE")
	s.seek()
	s.press("Enter", 3) // "allow once"
	s.hears("THREE", false)
	s.holds("THREE")

	s.proposed("FOUR")
	s.reject()
	s.cancelled("FOUR")
	s.returns()
	s.holds("THREE")

	s.say(secondPrompt) // the CLI goes on, and in its own terminal has the keys again
	s.proposed("FIVE")
	s.seek()
	s.press(s.refusal(), 5)
	s.cancelled("FIVE")
	s.returns()
	s.holds("THREE")

	s.settled("accepted", "accepted, edited", "withdrawn", "rejected", "withdrawn")
	s.sawCursor()
}

// proposed waits for the diff whose proposal begins with a line.
func (s *seat) proposed(line string) {
	s.Helper()
	s.untilWithin(cliPatience, "the diff with "+line, func() bool {
		return s.eval(s.place()) == "a.txt <proposal>" && s.eval(s.proposal("a.txt")) == line+"|two"
	})
}

// returns waits until no diff is on show, and the user is where they were.
func (s *seat) returns() {
	s.Helper()
	if s.own {
		s.is(s.inCLI(), "1")
	} else {
		s.calm("a.txt")
	}
}

// seek leads the user from a diff to the CLI in the editor's own terminal.
func (s *seat) seek() {
	s.Helper()
	if s.own {
		s.seekCLI()
	}
}

func (s *seat) refusal() string {
	if s.own {
		return s.refuses()
	}
	return "Escape"
}

// holds waits until the file and its buffer begin with a line.
func (s *seat) holds(line string) {
	s.Helper()
	s.until(line+" in file and buffer", func() bool {
		data, err := os.ReadFile(s.path("a.txt"))
		return err == nil && string(data) == line+"\ntwo\n" && s.eval(s.buffer("a.txt")) == line+"|two"
	})
}

// told is what the model was told of a change that begins with a line.
func (s *seat) told(line string) string {
	for _, r := range s.m.Requests() {
		for _, result := range r.Results() {
			if strings.Contains(result.Response.Output, line+"\ntwo") {
				return result.Response.Output
			}
		}
	}
	return ""
}

// hears waits until the model knows of a change, and of who has decided.
func (s *seat) hears(line string, editor bool) {
	s.Helper()
	s.untilWithin(cliPatience, "the model to hear of "+line, func() bool { return s.told(line) != "" })
	if got := s.told(line); strings.Contains(got, "User modified") != editor {
		s.Errorf("the model was told: %s", got)
	}
}

// press types a key with which the CLI decides the diff on show, the n-th. It
// may not have been listening yet; then it is typed again.
func (s *seat) press(key string, n int) {
	s.Helper()
	var pressed time.Time
	s.untilWithin(cliPatience, "what "+key+" does in the CLI", func() bool {
		if len(s.outcomes()) == n {
			return true
		}
		if time.Since(pressed) > 10*time.Second {
			s.keys.Keys(key)
			pressed = time.Now()
		}
		return false
	})
}

// say types a prompt until the CLI has taken it. Enter right after text is a
// line end to the CLI, and what it did not take is typed anew.
func (s *seat) say(text string) {
	s.Helper()
	var typed, pressed time.Time
	s.untilWithin(cliPatience, "the prompt "+text, func() bool {
		if slices.Contains(s.log().prompts, text) {
			return true
		}
		switch now := time.Now(); {
		case now.Sub(typed) > 40*time.Second:
			if !typed.IsZero() {
				s.keys.Keys("C-u") // empties the line
			}
			s.keys.Type(text)
			typed, pressed = now, now.Add(-9*time.Second)
		case now.Sub(pressed) > 10*time.Second:
			s.keys.Keys("Enter")
			pressed = now
		}
		return false
	})
}

// cancelled waits until the CLI has put a refused change down, and waits for a prompt.
func (s *seat) cancelled(line string) {
	s.Helper()
	s.untilWithin(cliPatience, "the CLI to give up "+line, func() bool {
		l := s.log()
		return slices.Contains(l.refused, line+"\ntwo\n") && l.cancelled == len(l.refused)
	})
	if told := s.told(line); told != "" {
		s.Errorf("the model was told: %s", told)
	}
}

// outcomes are what pollux keeps of decided proposals, oldest first.
func (s *seat) outcomes() (all []string) {
	s.Helper()
	entries, err := s.ctl.History(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, entry := range slices.Backward(entries) {
		if entry.Edited {
			entry.Outcome += ", edited"
		}
		all = append(all, entry.Outcome)
	}
	return all
}

// settled waits for these outcomes.
func (s *seat) settled(want ...string) {
	s.Helper()
	var got []string
	defer func() {
		if s.Failed() {
			s.Logf("the outcomes are %q", got)
		}
	}()
	s.until("the outcomes "+strings.Join(want, "; "), func() bool {
		got = s.outcomes()
		return slices.Equal(got, want)
	})
}

// knowsCursor waits until the editor has told where the cursor is.
func (s *seat) knowsCursor() {
	s.Helper()
	s.until("the cursor in pollux", func() bool {
		now, err := s.ctl.Context(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		return now.Active == s.path("a.txt") && now.Cursor != nil && now.Cursor.Line == 1
	})
}

// sawCursor checks that the model has been shown the user's file and line.
func (s *seat) sawCursor() {
	s.Helper()
	for _, r := range s.m.Requests() {
		if c := r.Context(); c != nil && c.ActiveFile != nil && c.ActiveFile.Path == s.path("a.txt") && c.ActiveFile.Cursor != nil && c.ActiveFile.Cursor.Line == 2 {
			return
		}
	}
	for _, r := range s.m.Requests() {
		s.Errorf("the model never sees the cursor; it sees %s", r.ContextText())
	}
}

// stop keeps the CLI from doing anything, goOn lets it.
func (s *seat) stop() {
	s.Helper()
	s.send(syscall.SIGSTOP)
	s.Cleanup(s.goOn) // it could not even end
}

func (s *seat) goOn() { s.Helper(); s.send(syscall.SIGCONT) }

// send gives the CLI a signal.
func (s *seat) send(sig syscall.Signal) {
	s.Helper()
	data, err := os.ReadFile(filepath.Join(s.root, "pid"))
	if err != nil {
		s.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		s.Fatal(err)
	}
	s.kill(pid, sig)
}

// A cliLog is what the CLI has written down of its conversation.
type cliLog struct {
	prompts   []string
	refused   []string // contents
	cancelled int      // how often it went back to its prompt
}

func (s *seat) log() (l cliLog) {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(s.root, ".gemini", "tmp", "*", "chats", "*.jsonl"))
	if err != nil {
		s.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			l.read([]byte(line))
		}
	}
	return l
}

// read takes one line in; the last one may be half written.
func (l *cliLog) read(line []byte) {
	var r struct {
		Type      string
		Content   json.RawMessage
		ToolCalls []struct {
			Status string
			Args   struct{ Content string }
		}
	}
	if json.Unmarshal(line, &r) != nil {
		return
	}
	for _, call := range r.ToolCalls {
		if call.Status == "cancelled" && !slices.Contains(l.refused, call.Args.Content) {
			l.refused = append(l.refused, call.Args.Content)
		}
	}
	var text string
	var parts []struct{ Text string }
	switch {
	case r.Type == "info" && json.Unmarshal(r.Content, &text) == nil && text == "Request cancelled.":
		l.cancelled++
	case r.Type == "user" && json.Unmarshal(r.Content, &parts) == nil:
		for _, part := range parts {
			l.prompts = append(l.prompts, strings.TrimSpace(part.Text))
		}
	}
}
