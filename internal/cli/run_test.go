//go:build unix

package cli

import (
	"bufio"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// trap is a command that reports each signal and ends with 5 at TERM.
const trap = `trap 'echo got INT' INT; trap 'echo got HUP' HUP; trap 'echo got QUIT' QUIT; trap 'echo got TERM; exit 5' TERM; echo ready; while :; do sleep 0.02; done`

// expect reads lines until one contains want.
func expect(t *testing.T, r *bufio.Reader, want string) string {
	t.Helper()
	lines := make(chan string, 1)
	go func() {
		var all strings.Builder
		for !strings.Contains(all.String(), want) {
			line, err := r.ReadString('\n')
			all.WriteString(line)
			if err != nil {
				break
			}
		}
		lines <- all.String()
	}()
	select {
	case got := <-lines:
		if !strings.Contains(got, want) {
			t.Fatalf("the output ended with %q before %q", got, want)
		}
		return got
	case <-time.After(patience):
		t.Fatalf("no %q", want)
		return ""
	}
}

// Signals to pollux run reach its command, and pollux ends with the command's exit code.
func TestRunPassesSignals(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("run", "--no-open", "--", "sh", "-c", trap)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	r := bufio.NewReader(out)
	expect(t, r, "ready")
	for _, s := range []struct {
		sig  syscall.Signal
		want string
	}{{syscall.SIGINT, "got INT"}, {syscall.SIGQUIT, "got QUIT"}, {syscall.SIGHUP, "got HUP"}, {syscall.SIGTERM, "got TERM"}} {
		cmd.Process.Signal(s.sig)
		expect(t, r, s.want)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// In a terminal Ctrl-C reaches the command once, from the terminal, and pollux continues to serve it. Ctrl-Z stops
// both, and fg continues both.
func TestRunInTerminal(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("run", "--no-open", "--", "sh", "-c", trap)
	tty, err := pty.Start(cmd) // a new session with the terminal
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	r := bufio.NewReader(tty)
	expect(t, r, "ready")
	tty.Write([]byte{3})
	expect(t, r, "got INT")
	tty.Write([]byte{3})
	expect(t, r, "got INT")
	tty.Write([]byte{28}) // Ctrl-\
	expect(t, r, "got QUIT")
	if len(w.files()) != 1 {
		t.Error("Ctrl-C stopped the companion")
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGSTOP) // like Ctrl-Z; SIGTSTP is ignored in an orphaned group
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it does not stop: %v, %v", status, err)
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
	cmd.Process.Signal(syscall.SIGTERM)
	rest := expect(t, r, "got TERM")
	if strings.Contains(rest, "got INT") {
		t.Error("one Ctrl-C arrived twice")
	}
	io.Copy(io.Discard, r)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 5 || len(w.leftovers()) > 0 {
		t.Errorf("exit code %d, left behind: %v", code, w.leftovers())
	}
}

// The command gets the terminal itself, with its size. Before that pollux says how to see proposals where no page opens.
func TestRunTerminalIsPassedOn(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("run", "--no-open", "--", "sh", "-c", "stty size; test -t 0 && test -t 1 && test -t 2 && echo terminal")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 77})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	got := expect(t, bufio.NewReader(tty), "\nterminal")
	if hint, sees, ok := strings.Cut(got, "\n"); !ok || !strings.Contains(hint, "in another terminal: pollux review") || !strings.Contains(sees, "33 77") {
		t.Errorf("it sees %q", got)
	}
	cmd.Wait()
}
