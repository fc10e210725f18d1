//go:build unix

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A beside is a command that runs beside a suspended companion.
type beside struct {
	args []string
	code int
	says string
}

// together starts all commands at once, because each waits in vain, and checks each one when it has ended.
func (w *world) together(commands map[string]beside) {
	type started struct {
		cmd   *exec.Cmd
		out   strings.Builder
		timer *time.Timer
	}
	running := map[string]*started{}
	for name, b := range commands {
		s := &started{cmd: w.command(b.args...)}
		s.cmd.WaitDelay = time.Second
		s.cmd.Stdin = strings.NewReader("y\n")
		s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
		if err := s.cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		s.timer = time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
		running[name] = s
	}
	for name, b := range commands {
		w.t.Run(name, func(t *testing.T) {
			s := running[name]
			err := s.cmd.Wait()
			if !s.timer.Stop() {
				t.Fatalf("it hangs:\n%s", &s.out)
			}
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := s.cmd.ProcessState.ExitCode(); code != b.code || !strings.Contains(s.out.String(), b.says) {
				t.Errorf("exit code %d, want %d with %q:\n%s", code, b.code, b.says, &s.out)
			}
		})
	}
}

// Beside a suspended companion every command ends, names the process, and says what to do.
func TestStoppedCompanion(t *testing.T) {
	w := newWorld(t)
	l := w.serve()
	file := filepath.Join(w.project, "f")
	if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.cmd.Process.Signal(syscall.SIGCONT) })
	advice := fmt.Sprintf("kill -CONT %d", l.PID)
	w.together(map[string]beside{
		"env":          {[]string{"env"}, 3, advice},
		"env --json":   {[]string{"env", "--json"}, 3, advice},
		"page":         {[]string{"page"}, 3, advice},
		"open":         {[]string{"open", file}, 3, advice},
		"diff":         {[]string{"diff", file}, 3, advice},
		"review":       {[]string{"review"}, 2, "terminal"},
		"status":       {[]string{"status"}, 1, advice},
		"status --all": {[]string{"status", "--all", "--json"}, 1, advice},
		"doctor":       {[]string{"doctor"}, 1, advice},
		"context":      {[]string{"context"}, 3, advice},
		"mention":      {[]string{"mention", file}, 3, advice},
		"relay":        {[]string{"relay"}, 0, ""},
		"mcp --ide":    {[]string{"mcp", "--ide"}, 0, ""},
		"stop":         {[]string{"stop"}, 3, advice},
		"pause":        {[]string{"pause"}, 3, advice},
		"share":        {[]string{"share", "claude", "never"}, 3, advice},
		"resume":       {[]string{"resume"}, 3, advice},
		"keep":         {[]string{"keep"}, 2, "starts this by itself"},
		"conform":      {[]string{"conform", "--pid", strconv.Itoa(l.PID)}, 3, "suspended"},
	})
}

// SPEC A-4: beside a companion whose control socket others have filled, every command says that one runs, and what helps; nobody consents
// meanwhile, since the agents are not known.
func TestFullCompanion(t *testing.T) {
	w := newWorld(t)
	l := w.serve()
	sockets, err := filepath.Glob(filepath.Join(w.root, "r", "pollux", "*.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("%q, %v", sockets, err)
	}
	for range 80 {
		conn, err := net.Dial("unix", sockets[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	file := filepath.Join(w.project, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprintf("process %d runs, but other", l.PID)
	w.together(map[string]beside{
		"env":     {[]string{"env"}, 3, says},
		"page":    {[]string{"page"}, 3, says},
		"open":    {[]string{"open", file}, 3, says},
		"status":  {[]string{"status"}, 0, says},
		"doctor":  {[]string{"doctor"}, 1, says},
		"stop":    {[]string{"stop"}, 3, says},
		"pause":   {[]string{"pause"}, 3, says},
		"share":   {[]string{"share", "claude", "never"}, 3, says},
		"consent": {[]string{"extensions", "consent", "grant", "x", "--yes"}, 1, says},
	})
	second := w.command("serve", "--no-open", "--json")
	stderr, err := second.StderrPipe()
	if err == nil {
		err = second.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stderr).ReadString('\n')
	_ = second.Process.Kill()
	_ = second.Wait()
	if !strings.Contains(line, says) {
		t.Errorf("one more companion says %q", line)
	}
}
