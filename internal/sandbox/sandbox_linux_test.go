package sandbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/peers"
)

// testTime bounds a run of a test's.
const testTime = 20 * time.Second

// runIn runs a command under a policy and fails the test when it could not be
// run. On a machine that grants no namespaces it is left out, unless peers are required.
func runIn(t testing.TB, s *Sandbox, p Policy, c Command) *Result {
	t.Helper()
	if c.Limits.Time == 0 {
		c.Limits.Time = testTime
	}
	r, err := s.Run(context.Background(), p, c)
	if errors.Is(err, ErrSetup) && !peers.Required() {
		if report := s.Check(context.Background()); !report.Enforced {
			t.Skip(report.Summary, report.Fixes)
		}
	}
	if err != nil {
		t.Fatalf("%v: %v", c.Args, err)
	}
	return r
}

// TestInterpretersStart: at every level, with what each can do on its own
// (SPEC S-1, E-2).
func TestInterpretersStart(t *testing.T) {
	s := New(&Options{Cache: t.TempDir()})
	workspace := t.TempDir()
	for _, level := range []manifest.Access{manifest.None, manifest.Workspace, manifest.Home, manifest.Full} {
		for _, args := range [][]string{
			{"true"},
			{"sh", "-c", "echo hello | grep -q hello && test -w $TMPDIR"},
			{"python3", "-c", "import subprocess, multiprocessing, ssl, json; assert subprocess.run(['true']).returncode == 0"},
			{"node", "-e", "require('child_process').execFileSync('true'); new (require('worker_threads').Worker)('1', {eval: true})"},
		} {
			t.Run(level.String()+"/"+args[0], func(t *testing.T) {
				r := runIn(t, s, Policy{Read: level}, Command{Args: args, Workspace: workspace})
				if r.Code != 0 {
					t.Errorf("exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
				}
			})
		}
	}
}
