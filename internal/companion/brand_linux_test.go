package companion

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/agent/codex"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1, CX-1: Codex, which has no session, is met as other agents are: its own early rule is dropped, and it is known.
func TestCodexIsMet(t *testing.T) {
	o, a, _ := options(t)
	if err := os.MkdirAll(filepath.Join(os.Getenv("HOME"), ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := start(t, o)
	program := filepath.Join(t.TempDir(), "codex") // another one: what runs this very program plays an agent
	if data, err := os.ReadFile("/proc/self/exe"); err != nil || os.WriteFile(program, data, 0o700) != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), asksVariable+"="+codex.Path(os.TempDir()), asksOfVariable+"="+a)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	setter, _ := proc.Lookup(cmd.Process.Pid)
	c.setters.Add(setter)
	c.reg.SetRule(review.Rule{Mode: review.AcceptAll})
	fmt.Fprintln(in)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if rules := c.reg.Rules(); !c.met.Has(setter) || !proc.Branded(setter.PID) || len(rules) != 0 {
		t.Errorf("met: %v, branded: %v, rules left: %v", c.met.All(), proc.Branded(setter.PID), rules)
	}
}

// SPEC §11.1: what an agent starts after it has connected counts as the agent's for everybody, also without parents, session and mark:
// for another companion, after this one's record is lost, and while none runs. What is above the companion is not branded.
func TestMeetBrands(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	shell := exec.Command("bash", "-c", `read; setsid -f env -i bash -c 'echo $$; exec sleep 60'`)
	shell.Args[0] = "gemini"
	in, out := child.Start(t, shell)
	agent, _ := proc.Lookup(shell.Process.Pid)
	self, _ := proc.Lookup(os.Getpid())
	parent, _ := proc.Lookup(os.Getppid())
	for name, p := range map[string]proc.Info{"above the companion": parent, "the companion itself": self} {
		if c.meetCLI(p); proc.Branded(p.PID) {
			t.Fatalf("%s is branded", name)
		}
	}
	if c.meet(parent, agent); proc.Branded(agent.PID) {
		t.Error("what asks by pollux mcp is branded, which may be a terminal of the user's")
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	client, _ := proc.Lookup(other.Process.Pid)
	if c.meetCLI(client); proc.Branded(client.PID) {
		t.Error("a client that is no CLI is branded")
	}
	if c.meetCLI(parent, agent); !proc.Branded(agent.PID) {
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

// SPEC §11.1: a CLI's daemon may run the model's shell, and asks nothing itself, as Codex's. It is known with its CLI.
func TestMeetsTheDaemon(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	run := func(name string) proc.Info {
		cmd := exec.Command("sleep", "60")
		cmd.Args[0] = name
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		p, _ := proc.Lookup(cmd.Process.Pid)
		return p
	}
	cli, daemon, editor := run("/x/copilot"), run("/y/copilot"), run("vim")
	c.meetCLI(cli)
	for _, p := range []proc.Info{cli, daemon} {
		if !proc.Branded(p.PID) || !c.met.Has(p) {
			t.Errorf("process %d, branded: %v, met: %v", p.PID, proc.Branded(p.PID), c.met.Has(p))
		}
	}
	if proc.Branded(editor.PID) || c.met.Has(editor) {
		t.Error("another program counts as the agent's")
	}
}
