package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1: whoever counts as an agent's by the brand or a mark learns why, and what to do.
func TestCounts(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	x := &examination{r: &Report{}}
	x.person(sleep.Process.Pid, "it")
	if len(x.r.Findings) > 0 {
		t.Fatalf("without a brand: %+v", x.r.Findings)
	}
	p, _ := proc.Lookup(sleep.Process.Pid)
	if !proc.Brand(p) {
		t.Fatal("not branded")
	}
	x.person(p.PID, "it")
	if len(x.r.Findings) != 1 || x.r.Findings[0].ID != "brand" || x.r.Findings[0].Level != Warning {
		t.Errorf("%+v", x.r.Findings)
	}
	marked := exec.Command("cat")
	marked.Env = []string{"AGENT=1", "PATH=" + os.Getenv("PATH")}
	in, out := child.Start(t, marked)
	t.Cleanup(func() { in.Close(); _ = marked.Wait() })
	fmt.Fprintln(in)
	if _, err := out.Read(make([]byte, 1)); err != nil { // now the system shows its environment
		t.Fatal(err)
	}
	if x.person(marked.Process.Pid, "it"); len(x.r.Findings) != 2 || !strings.Contains(x.r.Findings[1].Why, "AGENT") {
		t.Errorf("with a mark: %+v", x.r.Findings)
	}
}
