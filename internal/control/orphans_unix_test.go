//go:build unix

package control

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1: a go-between whose agent is not known is a doubt, once, as long as it lives.
func TestOrphansAreDoubts(t *testing.T) {
	cut := exec.Command("sleep", "100")
	if err := cut.Start(); err != nil {
		t.Fatal(err)
	}
	p, _ := proc.Lookup(cut.Process.Pid)
	var o orphans
	o.Add(p, p)
	if why := o.doubts(); len(why) != 1 || !strings.Contains(why[0], "parents have ended") {
		t.Errorf("%v", why)
	}
	_ = cut.Process.Kill()
	_ = cut.Wait()
	if why := o.doubts(); len(why) != 0 {
		t.Errorf("it has ended: %v", why)
	}
}
