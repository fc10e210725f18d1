//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Beside a companion that is stopped every command ends, says which process it is, and what to do.
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
	for name, tc := range map[string]struct {
		args []string
		code int
		says string // "" for the stopped process's number
	}{
		"env":          {[]string{"env"}, 3, ""},
		"env --json":   {[]string{"env", "--json"}, 3, ""},
		"page":         {[]string{"page"}, 3, ""},
		"open":         {[]string{"open", file}, 3, ""},
		"diff":         {[]string{"diff", file}, 3, ""},
		"review":       {[]string{"review"}, 2, "terminal"},
		"status":       {[]string{"status"}, 1, ""},
		"status --all": {[]string{"status", "--all", "--json"}, 1, ""},
		"doctor":       {[]string{"doctor"}, 1, ""},
		"context":      {[]string{"context"}, 1, ""},
		"relay":        {[]string{"relay"}, 0, "-"},
		"mcp --ide":    {[]string{"mcp", "--ide"}, 0, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := w.command(tc.args...)
			cmd.WaitDelay = time.Second
			if name == "diff" {
				cmd.Stdin = strings.NewReader("y\n")
			}
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			if !timer.Stop() {
				t.Fatalf("it hangs:\n%s", &out)
			}
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			want := tc.says
			if want == "" {
				want = fmt.Sprintf("kill -CONT %d", l.PID)
			}
			if want != "-" && !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, &out)
			}
		})
	}
}
