// Package editors drives the real Neovim, Vim, Emacs, micro and Kakoune with pollux's plugins
// in a real terminal, by the keys that a user types.
package editors

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/peers"
)

// patience is for what a loaded machine may take.
const patience = 60 * time.Second

// binary is the pollux under test.
func binary() string { return peers.Pollux() }

func TestMain(m *testing.M) {
	agent.Main()
	flag.Parse()
	os.Exit(peers.Build(m.Run))
}

// A flavour is one editor: how it is started and asked, and the keys that a user has.
type flavour struct {
	name, display string // as in ideInfo
	// start returns the arguments that open files with the plugin, without anything of the machine's user.
	start func(t *testing.T, b *bench, files []string) []string
	// eval asks the editor for the value of an expression in its own language.
	// An editor that does not answer yields what no test expects, after a while.
	eval func(b *bench, expr string) string
	// running and yes are an expression and its value once the plugin has a companion; "" where nothing can be asked.
	running, yes string
	// messages is an expression for all that the editor has told its user.
	messages string
	// later starts a clock of the editor's, and is an expression that is "1" when ms have passed by it.
	later func(b *bench, ms int) string
	// user is the one who sits at a bench with this editor; nil where no story is played.
	user func(b *bench) driver
	env  []string
}

// A bench is one editor in a terminal, in a project of its own.
type bench struct {
	*testing.T
	driver
	f       flavour
	now     string // the step's name
	tm      *terminal.Terminal
	root    string // short, holds everything
	project string
	env     []string
}

// newBench makes a user with a project that holds files.
func newBench(t *testing.T, f flavour, files map[string]string) *bench {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "pxe") // whatever TMPDIR is: it must be short, and stands in the pictures
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	b := &bench{T: t, f: f, root: root, project: filepath.Join(root, "p")}
	if f.user != nil {
		b.driver = f.user(b)
	}
	for _, dir := range []string{"p", "t", "s", "c", "d", "r"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		b.write(name, content)
	}
	b.write("../c/pollux/config.json", `{"keep": false}`) // no test leaves a process behind
	b.env = append([]string{
		"HOME=" + root, "TMPDIR=" + root + "/t", "XDG_STATE_HOME=" + root + "/s", "XDG_CONFIG_HOME=" + root + "/c", "XDG_DATA_HOME=" + root + "/d",
		"XDG_RUNTIME_DIR=" + root + "/r", "XDG_CACHE_HOME=" + root + "/s", "LANG=C.UTF-8", "TERM=screen-256color", "SHELL=/bin/sh", "DISPLAY=", "WAYLAND_DISPLAY=",
		"PATH=" + filepath.Dir(binary()) + ":" + os.Getenv("PATH"),
	}, f.env...)
	return b
}

func (b *bench) write(name, content string) {
	b.Helper()
	path := filepath.Join(b.project, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) path(name string) string { return filepath.Join(b.project, name) }

// open starts the editor with files and waits for its companion, and until
// the plugin knows of it: then it listens to keys.
func (b *bench) open(files ...string) {
	b.Helper()
	b.tm = terminal.Start(b, terminal.Options{Dir: b.project, Env: b.env, Args: b.f.start(b.T, b, files)})
	b.Cleanup(b.diagnose)
	b.file()
	if b.f.running != "" {
		b.is(b.f.running, b.f.yes)
	}
}

// diagnose shows, of a test that has failed, what its screen does not.
func (b *bench) diagnose() {
	if !b.Failed() {
		return
	}
	log, err := os.ReadFile(filepath.Join(b.root, "s", "pollux", "pollux.log"))
	if len(log) > 8000 {
		log = log[len(log)-8000:]
	}
	b.Logf("the end of pollux's log (%v):\n%s", err, log)
	if b.f.running != "" {
		b.Logf("the editor's messages:\n%s", b.f.eval(b, b.f.messages))
	}
}

// files lists the discovery files.
func (b *bench) files() []string {
	names, err := filepath.Glob(filepath.Join(b.root, "t", "gemini", "ide", "gemini-ide-server-*.json"))
	if err != nil {
		b.Fatal(err)
	}
	return names
}

// file waits for the one discovery file.
func (b *bench) file() string {
	b.Helper()
	var names []string
	b.until("a discovery file", func() bool { names = b.files(); return len(names) == 1 })
	return names[0]
}

// pid and port are those in the discovery file's name.
func (b *bench) pid() int  { return b.number(3) }
func (b *bench) port() int { return b.number(4) }

func (b *bench) number(i int) int {
	b.Helper()
	parts := strings.Split(strings.TrimSuffix(filepath.Base(b.file()), ".json"), "-")
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// connect opens a session as a CLI does.
func (b *bench) connect() *agent.Agent {
	b.Helper()
	return agent.Start(b, b.file())
}

func (b *bench) until(what string, ok func() bool) {
	b.Helper()
	b.untilWithin(patience, what, ok)
}

func (b *bench) untilWithin(patience time.Duration, what string, ok func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("waited in vain for %s", what)
		}
	}
}

// eval asks the editor.
func (b *bench) eval(expr string) string { b.Helper(); return b.f.eval(b, expr) }

// is waits until an expression has a value.
func (b *bench) is(expr, want string) {
	b.Helper()
	var got string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = b.eval(expr); got == want {
			return
		}
	}
	b.Fatalf("%s is %q, want %q", expr, got, want)
}

// says waits until the editor has told its user a text: it stands in the
// messages, also when the next one has taken its place on the screen.
func (b *bench) says(text string) {
	b.Helper()
	var got string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = b.eval(b.f.messages); strings.Contains(got, text) {
			return
		}
	}
	b.Fatalf("the editor never says %q, but:\n%s", text, got)
}

// pause waits until so much time has passed by the editor's own clock: all
// that the editor would have done within it is done.
func (b *bench) pause(ms int) {
	b.Helper()
	b.is(b.f.later(b, ms), "1")
}

// stamp changes when the discovery file is written anew.
func (b *bench) stamp() string {
	for _, file := range b.files() {
		if info, err := os.Stat(file); err == nil {
			return fmt.Sprint(info.ModTime().UnixNano())
		}
	}
	return ""
}

// history says whether a text stands in what pollux keeps of past proposals,
// journal whether in what it keeps of open ones.
func (b *bench) history(text string) bool { return b.keeps("history", text) }
func (b *bench) journal(text string) bool { return b.keeps("resume", text) }

func (b *bench) keeps(dir, text string) bool {
	found := false
	_ = filepath.WalkDir(filepath.Join(b.root, "s", "pollux", dir), func(path string, _ fs.DirEntry, err error) error {
		if data, readErr := os.ReadFile(path); err == nil && readErr == nil && strings.Contains(string(data), text) {
			found = true
		}
		return nil
	})
	return found
}

// keys types by tmux's names; text types as it is.
func (b *bench) keys(keys ...string) { b.Helper(); b.tm.Keys(keys...) }
func (b *bench) text(s string)       { b.Helper(); b.tm.Type(s) }

// ex types a command of Vim's.
func (b *bench) ex(command string) { b.Helper(); b.text(":" + command); b.keys("Enter") }

// escape leads Vim back to its normal mode. What follows is not typed at once
// after the key, which would be another one.
func (b *bench) escape() { b.Helper(); b.keys("Escape"); b.is("mode()", "n") }

// companion is the PID of the pollux that serves the editor.
func (b *bench) companion() int {
	b.Helper()
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(b.pid()), "-x", "pollux").Output()
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		b.Fatalf("no pollux below the editor: %s", out)
	}
	return n
}

func (b *bench) kill(pid int, sig syscall.Signal) {
	b.Helper()
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(sig)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// active is the active file's name, cursor and selection in a context, as one line.
func active(files []agent.File) string {
	for _, f := range files {
		if !f.IsActive {
			continue
		}
		s := filepath.Base(f.Path)
		if f.Cursor != nil {
			s += fmt.Sprintf(" %d:%d", f.Cursor.Line, f.Cursor.Character)
		}
		if f.SelectedText != "" {
			s += fmt.Sprintf(" %q", f.SelectedText)
		}
		return s
	}
	return "none"
}

// sees waits until the CLI's context has this active line.
func (b *bench) sees(a *agent.Agent, want string) {
	b.Helper()
	last := ""
	defer func() {
		if b.Failed() {
			b.Logf("the last context was %s", last)
		}
	}()
	a.Context(want, func(files []agent.File) bool { last = active(files); return last == want })
}

// forgetful kills the companion and what it would remember by.
func (b *bench) forgetful() {
	b.Helper()
	b.until("the journal", func() bool { return b.journal("new") })
	old := b.stamp()
	if out, err := exec.Command("kill", "-STOP", itoa(b.companion())).CombinedOutput(); err != nil { // it writes no more
		b.Fatalf("%v: %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(b.root, "s", "pollux", "resume")); err != nil {
		b.Fatal(err)
	}
	b.kill(b.companion(), syscall.SIGKILL)
	b.until("another companion", func() bool { return len(b.files()) == 1 && b.stamp() != old && serves(b.file()) })
}
