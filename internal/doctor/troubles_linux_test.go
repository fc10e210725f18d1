package doctor

import (
	"os/exec"
	"testing"

	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1: whoever counts as an agent's by the brand learns why, and what to do.
func TestBranded(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	x := &examination{r: &Report{}}
	x.brand(sleep.Process.Pid, "it")
	if len(x.r.Findings) > 0 {
		t.Fatalf("without a brand: %+v", x.r.Findings)
	}
	p, _ := proc.Lookup(sleep.Process.Pid)
	if !proc.Brand(p) {
		t.Fatal("not branded")
	}
	x.brand(p.PID, "it")
	if len(x.r.Findings) != 1 || x.r.Findings[0].ID != "brand" || x.r.Findings[0].Level != Warning {
		t.Errorf("%+v", x.r.Findings)
	}
}
