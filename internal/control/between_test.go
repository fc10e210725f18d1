//go:build unix

package control

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1: however many programs ask, none that lives is forgotten; and one whose agent is not known is a doubt, as long as it lives.
func TestBetweenForgetsNobody(t *testing.T) {
	us, ok := proc.Lookup(os.Getpid())
	other, ok2 := proc.Lookup(os.Getppid())
	if !ok || !ok2 {
		t.Fatal("the system tells nothing of processes")
	}
	b := between{seen: slices.Repeat([]proc.Info{us}, maxAgents-1)}
	if b.keep(&b.seen, other); !slices.Contains(b.list(), other) || len(b.doubts()) > 0 {
		t.Errorf("the last that fits: %v", b.doubts())
	}
	b = between{seen: slices.Repeat([]proc.Info{us}, maxAgents)}
	if b.keep(&b.seen, other); !slices.Contains(b.list(), us) || len(b.doubts()) != 1 {
		t.Errorf("one too many: %d, %v", len(b.list()), b.doubts())
	}

	cut := exec.Command("sleep", "100")
	if err := cut.Start(); err != nil {
		t.Fatal(err)
	}
	p, _ := proc.Lookup(cut.Process.Pid)
	b = between{}
	b.keep(&b.cut, p, p)
	if why := b.doubts(); len(why) != 1 || !strings.Contains(why[0], "parents have ended") || len(b.list()) != 0 {
		t.Errorf("%v, %v", why, b.list())
	}
	_ = cut.Process.Kill()
	_ = cut.Wait()
	if why := b.doubts(); len(why) != 0 {
		t.Errorf("it has ended: %v", why)
	}
}
