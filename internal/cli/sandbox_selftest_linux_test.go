package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

// sandbox --self-test tries the same list as the sandbox's tests, and leaves nothing behind (SPEC S-1).
func TestSelfTest(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	t.Parallel() // alongside the test that waits
	w := newWorld(t)
	cmd := w.command("sandbox", "--self-test", "--json")
	defer time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	var errs strings.Builder
	cmd.Stderr = &errs
	data, err := cmd.Output()
	if err != nil {
		t.Errorf("%v\n%s%s", err, data, errs.String())
	}
	var got struct {
		Held, Out int
		Trials    []sandbox.Trial
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if want := len(escapes.All()); got.Held != want || got.Out != 0 || len(got.Trials) != want {
		t.Errorf("%d of %d held", got.Held, want)
	}
	for _, trial := range got.Trials {
		if trial.Outside == "does not" {
			t.Errorf("%s proves nothing here", trial.Name)
		}
	}
	if left, err := os.ReadDir(w.tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	cmd = w.command("sandbox", "--self-test", "--", "true")
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != console.CodeUsage {
		t.Errorf("with a command: %v", err)
	}
}
