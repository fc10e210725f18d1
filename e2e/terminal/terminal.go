// Package terminal drives a program in a real terminal: a tmux server of the
// test's own, keys in, screen out.
package terminal

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// Options say what to run. Env is the whole environment of the program.
type Options struct {
	Dir  string
	Env  []string
	Args []string
	// Columns and Rows are 160 and 50 when 0.
	Columns, Rows int
}

// A Terminal is one program in one tmux server. The server ends with the
// test, and nothing else's. It is for one goroutine at a time.
type Terminal struct {
	t      testing.TB
	tmux   string
	socket string
	pane   string // tmux's name of it; "" is the only one
}

// Start runs a program in a terminal.
func Start(t testing.TB, o Options) *Terminal {
	t.Helper()
	if o.Columns == 0 {
		o.Columns, o.Rows = 160, 50
	}
	dir, err := os.MkdirTemp("/tmp", "pollux-tty-") // t.TempDir, and below any TMPDIR, may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	tm := &Terminal{t: t, tmux: peers.Need(t, peers.Tmux), socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", tm.Screen())
		}
		program := tm.PID()
		tm.run("kill-server")
		outlive(program)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	config := filepath.Join(dir, "conf")
	if err := os.WriteFile(config, []byte("set -g remain-on-exit on\nset -g history-limit 5000\nset -g status off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-u", "-S", tm.socket, "-f", config, "new-session", "-d", "-x", strconv.Itoa(o.Columns), "-y", strconv.Itoa(o.Rows), "-c", o.Dir}
	cmd := exec.Command(tm.tmux, append(append(args, "--"), o.Args...)...)
	cmd.Env = o.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	return tm
}

// outlive ends a program that does not end with its terminal: an editor may
// hang there, and would do so for ever.
func outlive(pid int) {
	for deadline := time.Now().Add(5 * time.Second); pid > 0; time.Sleep(20 * time.Millisecond) {
		stat, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if state := strings.TrimSpace(string(stat)); state == "" || state[0] == 'Z' {
			return
		}
		if process, err := os.FindProcess(pid); err == nil && time.Now().After(deadline) {
			_ = process.Kill()
			return
		}
	}
}

// run gives tmux one command. A server that is gone has an empty screen.
func (tm *Terminal) run(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, tm.tmux, append([]string{"-S", tm.socket}, args...)...).Output()
	if err != nil {
		tm.t.Logf("tmux %q: %v", args, err) // for a failure that may come of it
		return ""
	}
	return string(out)
}

// Pane is another pane of the same terminal, counted from 0.
func (tm *Terminal) Pane(i int) *Terminal {
	other := *tm
	other.pane = ":0." + strconv.Itoa(i)
	return &other
}

// at tells a command which pane is meant.
func (tm *Terminal) at(command ...string) []string {
	if tm.pane == "" {
		return command
	}
	return append(command, "-t", tm.pane)
}

// Type sends text as it is, Keys sends tmux's names of keys ("Enter", "Escape", "C-c").
func (tm *Terminal) Type(text string) { tm.run(append(tm.at("send-keys"), "-l", "--", text)...) }

// Keys sends keys by their tmux names.
func (tm *Terminal) Keys(keys ...string) { tm.run(append(tm.at("send-keys"), keys...)...) }

// Resize gives the terminal another size.
func (tm *Terminal) Resize(columns, rows int) {
	tm.run("resize-window", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows))
}

// Screen is what a person sees now; wrapped lines are joined.
func (tm *Terminal) Screen() string { return tm.run(tm.at("capture-pane", "-p", "-J")...) }

// All is the screen with everything that has scrolled out of it.
func (tm *Terminal) All() string { return tm.run(tm.at("capture-pane", "-p", "-J", "-S", "-")...) }

// Record returns a function for all that the terminal has been sent since, as it came.
func (tm *Terminal) Record() func() string {
	path := filepath.Join(filepath.Dir(tm.socket), "sent"+tm.pane)
	tm.run(append(tm.at("pipe-pane"), "cat >> "+path)...)
	return func() string {
		data, _ := os.ReadFile(path) // not there before the first byte
		return string(data)
	}
}

// PID is the program's process id.
func (tm *Terminal) PID() int {
	pid, err := strconv.Atoi(strings.TrimSpace(tm.run("display-message", "-p", "#{pane_pid}")))
	if err != nil {
		return 0
	}
	return pid
}

// Until polls until done, and fails the test with what and the screen (by
// the clean-up) when that takes longer than timeout.
func (tm *Terminal) Until(what string, timeout time.Duration, done func(screen string) bool) string {
	tm.t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if screen := tm.Screen(); done(screen) {
			return screen
		}
	}
	tm.t.Fatalf("after %s the terminal still does not show %s", timeout, what)
	return ""
}

// Wait waits until text stands on the screen.
func (tm *Terminal) Wait(text string, timeout time.Duration) string {
	tm.t.Helper()
	return tm.Until(strconv.Quote(text), timeout, func(screen string) bool { return strings.Contains(screen, text) })
}

// Exit waits for the program's end and returns its exit code. What the program printed just before may never
// be seen: tmux closes the terminal of a program that has ended, read or not. Wait for it before.
func (tm *Terminal) Exit(timeout time.Duration) int {
	tm.t.Helper()
	dead := regexp.MustCompile(`^(\d+) 1 (\d*)`)
	code := -1
	tm.Until("the program's end", timeout, func(string) bool {
		m := dead.FindStringSubmatch(tm.run("display-message", "-p", "#{pid} #{pane_dead} #{pane_dead_status}"))
		if m == nil {
			return false
		}
		if m[2] == "" { // tmux 3.3 misses the signal of a child's end at times: it is told again
			server, err := strconv.Atoi(m[1])
			if err == nil {
				err = exec.Command("kill", "-CHLD", strconv.Itoa(server)).Run()
			}
			return err != nil
		}
		n, err := strconv.Atoi(m[2])
		code = n
		return err == nil
	})
	return code
}
