// Package cli drives the published agents in a real terminal,
// with a home of the test's own and a scripted model.
package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// Deadlines on a machine that is busy with other tests.
const (
	startTimeout = 150 * time.Second
	waitTimeout  = 90 * time.Second
)

// What the CLI shows in an empty input box, and what it asks before a change.
const (
	empty    = "Type your message"
	question = "Apply this change?"
)

// A Home is what a user's machine is to pollux and the CLI: home folder,
// temp folder, environment.
type Home struct {
	Dir, Tmp string
}

// settings keep every question away that has nothing to do with an editor.
const settings = `{
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "ide": {"enabled": true, "hasSeenNudge": true},
  "general": {"disableAutoUpdate": true, "disableUpdateNag": true, "enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false},
  "ui": {"hideTips": true, "hideBanner": true}
}`

// NewHome makes one. Its paths are short, for sockets below them.
func NewHome(t testing.TB) Home {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "pollux-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeAll(base); err != nil {
			t.Error(err)
		}
	})
	h := Home{Dir: filepath.Join(base, "home"), Tmp: filepath.Join(base, "tmp")}
	for file, content := range map[string]string{
		filepath.Join(h.Tmp, ".keep"):                    "",
		filepath.Join(h.Dir, ".gemini", "settings.json"): settings,
		filepath.Join(h.Dir, ".gemini", "state.json"):    `{"terminalSetupPromptShown": true}`,

		filepath.Join(h.Dir, ".config", "pollux", "config.json"): `{"keep": false}`, // no test leaves a process behind
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// removeAll tries for a while: a CLI that was just killed may still be writing.
func removeAll(dir string) error {
	var err error
	for range 400 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// Env is the environment of a user's shell, with extra after it. Nothing of
// the machine's own gets in but PATH: no editor's and no CLI's variables.
func (h Home) Env(extra ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.Dir, "TMPDIR=" + h.Tmp,
		"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=xterm-256color", "USER=tester", "SHELL=/bin/sh",
	}, extra...)
}

// Variables are what the CLI needs to ask the scripted model and to find a
// companion on this machine, also inside a container.
func Variables(m *model.Server) []string {
	return []string{
		"GEMINI_API_KEY=anything", "GOOGLE_GEMINI_BASE_URL=" + m.URL(),
		"GEMINI_CLI_NO_RELAUNCH=1", "SSH_CONNECTION=127.0.0.1 1 127.0.0.1 2", "NO_COLOR=1",
	}
}

// A Session is one running CLI. It is for one goroutine at a time.
type Session struct {
	*terminal.Terminal
	Model *model.Server
	t     testing.TB
}

// Start runs the CLI in dir until its prompt stands there.
func Start(t testing.TB, h Home, dir string, env ...string) *Session {
	t.Helper()
	m := model.Start(t)
	s := Attach(t, m, terminal.Start(t, terminal.Options{
		Dir: dir, Env: h.Env(append(Variables(m), env...)...), Args: peers.Command(t, peers.Gemini),
	}))
	s.Ready()
	return s
}

// Attach takes a terminal in which somebody else starts a CLI (pollux run).
func Attach(t testing.TB, m *model.Server, tm *terminal.Terminal) *Session {
	return &Session{Terminal: tm, Model: m, t: t}
}

// Ready waits for the CLI's prompt.
func (s *Session) Ready() {
	s.t.Helper()
	s.Wait(empty, startTimeout)
}

// Command types a line that the CLI answers itself ("/ide status") and waits
// until answer stands on the screen below it.
func (s *Session) Command(line, answer string) string {
	s.t.Helper()
	before := strings.Count(s.All(), answer)
	s.enter(line, func() bool { return strings.Count(s.All(), answer) > before })
	return s.All()
}

// Status asks "/ide status" until the CLI has made up its mind, which takes it
// seconds on a busy machine, and returns the screen when it starts with want
// ("Connected to …", "Disconnected", "Directory mismatch").
func (s *Session) Status(want string) string {
	s.t.Helper()
	for deadline := time.Now().Add(waitTimeout); ; {
		before := lamps(s.All())
		s.enter("/ide status", func() bool { return lamps(s.All()) > before })
		all := s.All()
		if last := all[strings.LastIndex(all, "/ide status"):]; strings.Contains(last, want) {
			return all
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("/ide status never says %q", want)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// lamps counts the answers to /ide status.
func lamps(screen string) int {
	n := 0
	for _, lamp := range []string{"🟢", "🟡", "🔴", "✓ Connected", "✗ Disconnected", "Connecting..."} { // Gemini CLI's, Qwen Code's
		n += strings.Count(screen, lamp)
	}
	return n
}

// Ask types a prompt and returns the model's request that carries it.
// No question mark in it: the CLI may take one for its key for help.
func (s *Session) Ask(prompt string, turns ...model.Turn) *model.Request {
	s.t.Helper()
	s.Idle()
	s.Model.Script(prompt, turns...)
	n := len(s.Model.Requests())
	fits := func(r *model.Request) bool { return r.Prompt() == prompt }
	s.enter(prompt, func() bool {
		for _, r := range s.Model.Requests()[n:] {
			if fits(r) {
				return true
			}
		}
		return false
	})
	return s.Model.Wait(s.t, n, waitTimeout, fits)
}

// Idle waits until the CLI has done what it was asked: what is typed before
// would wait, and be sent together with what follows.
func (s *Session) Idle() {
	s.t.Helper()
	s.Until("an end of the work", waitTimeout, func(screen string) bool {
		return strings.Contains(screen, empty) && !strings.Contains(screen, "esc to cancel")
	})
}

// enter types a line and presses Enter until done: right after typing the
// CLI swallows it, or takes it for a pasted line end.
func (s *Session) enter(line string, done func() bool) {
	s.t.Helper()
	s.write(line)
	pressed, written, asked := time.Time{}, time.Now(), len(s.Model.Requests())
	s.Until("an answer to "+line, waitTimeout, func(screen string) bool {
		if done() {
			return true
		}
		if strings.HasPrefix(line, "/") && s.sent(line, &asked) { // it had not started yet, and took the command for a prompt
			s.Idle()
			s.write(line)
			pressed = time.Time{}
			return false
		}
		if pressed.IsZero() && strings.Contains(screen, empty) && time.Since(written) > waitTimeout/6 { // it was not listening yet
			s.write(line)
			written = time.Now()
			return false
		}
		if time.Since(pressed) > 1500*time.Millisecond && typed(screen, line) {
			s.Keys("Enter")
			pressed = time.Now()
		}
		return false
	})
}

// write types a line into the input box. What is typed while the CLI is not
// listening yet may be lost, in whole or in part: then it is typed anew.
func (s *Session) write(line string) {
	s.t.Helper()
	s.Type(line)
	at := time.Now()
	s.Until("the typed "+line, waitTimeout, func(screen string) bool {
		if strings.Contains(screen, line) {
			return true
		}
		if time.Since(at) > waitTimeout/6 {
			s.Keys("C-u") // empties the line
			s.Type(line)
			at = time.Now()
		}
		return false
	})
}

// sent says whether line has gone to the model since the first n requests, and counts on.
func (s *Session) sent(line string, n *int) bool {
	all := s.Model.Requests()
	found := slices.ContainsFunc(all[*n:], func(r *model.Request) bool { return r.Prompt() == line })
	*n = len(all)
	return found
}

// typed says whether line stands in the CLI's input box: what was sent stands
// above it, and an empty box says so.
func typed(screen, line string) bool {
	if strings.Contains(screen, empty) || strings.Contains(screen, question) {
		return false
	}
	for l := range strings.Lines(screen) {
		if l = strings.TrimSpace(l); strings.HasSuffix(strings.TrimRight(l, " │|\u200b"), line) && strings.ContainsAny(l, ">*!") {
			return true
		}
	}
	return false
}

// Question waits for the CLI's question about a proposed change.
func (s *Session) Question() {
	s.t.Helper()
	s.Wait(question, waitTimeout)
}

// Results waits for the request that brings the model the results of its calls.
func (s *Session) Results(from int) []model.FunctionResponse {
	s.t.Helper()
	return s.Model.Wait(s.t, from, waitTimeout, func(r *model.Request) bool { return len(r.Results()) > 0 }).Results()
}
