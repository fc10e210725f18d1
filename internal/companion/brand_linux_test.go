package companion

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1: what an agent starts after it has connected counts as the agent's for everybody, also without parents, session and mark:
// for another companion, after this one's record is lost, and while none runs. What is above the companion is not branded.
func TestMeetBrands(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	shell := exec.Command("bash", "-c", `read; setsid -f env -i bash -c 'echo $$; exec sleep 60'`)
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	agent, _ := proc.Lookup(shell.Process.Pid)
	self, _ := proc.Lookup(os.Getpid())
	parent, _ := proc.Lookup(os.Getppid())
	for name, p := range map[string]proc.Info{"above the companion": parent, "the companion itself": self} {
		if c.meet(p); proc.Branded(p.PID) {
			t.Fatalf("%s is branded", name)
		}
	}
	if c.meet(parent, agent); !proc.Branded(agent.PID) {
		t.Error("the agent is not branded")
	}
	fmt.Fprintln(in)
	line, err := bufio.NewReader(out).ReadString('\n')
	left := 0
	if _, err2 := fmt.Sscan(line, &left); err != nil || err2 != nil {
		t.Fatalf("%q: %v, %v", line, err, err2)
	}
	in.Close()
	_ = shell.Wait()
	if p, ok := proc.Lookup(left); !ok || strings.Contains(fmt.Sprint(guard.Line(left)), fmt.Sprint(agent.PID)) {
		t.Fatalf("process %+v has not left the agent", p)
	}
	defer func() { p, _ := os.FindProcess(left); _ = p.Kill() }()
	if got := guard.Look(left, nil); got != guard.Marked {
		t.Errorf("it counts as %v", got)
	}
	if got := guard.Look(os.Getpid(), nil); got != guard.Person {
		t.Errorf("this process counts as %v", got)
	}
}
