//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/internal/cli/console"
)

// stop names the companions that it could not end, even if it ended another one, and its exit code says so too (SPEC
// §11.5).
func TestStopSaysWhatGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		serve, editors int
		hangs          bool // another pollux serve is suspended
		elsewhere      bool // an editor of another folder is running
		code           int
		says           string // for each that continues
	}{
		"serve alone":            {serve: 1, code: console.CodeDone},
		"two of them":            {serve: 2, code: console.CodeDone},
		"beside an editor":       {serve: 1, editors: 1, code: console.CodeFailed, says: "belongs to the program that started it"},
		"beside two editors":     {serve: 1, editors: 2, code: console.CodeFailed, says: "belongs to the program that started it"},
		"an editor alone":        {editors: 1, code: console.CodeFailed, says: "belongs to the program that started it"},
		"beside one that hangs":  {serve: 1, hangs: true, code: console.CodeFailed, says: "kill -CONT"},
		"an editor and a hang":   {serve: 1, editors: 1, hangs: true, code: console.CodeFailed, says: ""},
		"an editor of elsewhere": {serve: 1, elsewhere: true, code: console.CodeDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var end, stays []int
			for range c.serve {
				end = append(end, w.serve().PID)
			}
			for range c.editors {
				stays = append(stays, w.newIDE("vim").pid)
			}
			if c.hangs {
				l := w.serve()
				if err := l.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.cmd.Process.Signal(syscall.SIGCONT) })
				stays = append(stays, l.PID)
			}
			if c.elsewhere {
				here := w.project
				w.project = filepath.Join(w.root, "q")
				if err := os.Mkdir(w.project, 0o700); err != nil {
					t.Fatal(err)
				}
				w.newIDE("vim")
				w.project = here
			}
			cmd := w.command("stop")
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &errs
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, pid := range end {
				if !strings.Contains(out.String(), "Process "+strconv.Itoa(pid)+" ends.") {
					t.Errorf("it does not say that %d ends", pid)
				}
			}
			for _, pid := range stays {
				if !strings.Contains(errs.String(), strconv.Itoa(pid)) || !strings.Contains(errs.String(), c.says) {
					t.Errorf("it does not say why %d goes on", pid)
				}
			}
			if t.Failed() {
				t.Logf("%s%s", &out, &errs)
			}
		})
	}
}
