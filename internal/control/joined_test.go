package control

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/proc"
)

// An agent that asks by pollux mcp is known as soon as it has said its name, under its newest name, and as long as its process lives.
func TestJoined(t *testing.T) {
	f := &fake{}
	c := joined(t, f)
	if err := c.Join(t.Context(), "claude-code", "1"); err != nil {
		t.Fatal(err)
	}
	if err := c.Join(t.Context(), strings.Repeat("é", 60), "2\x1b[2J"); err != nil {
		t.Fatal(err)
	}
	var now Status
	if err := c.call(t.Context(), methodStatus, empty{}, &now); err != nil {
		t.Fatal(err)
	}
	if want := (Asker{Name: strings.Repeat("é", 50), Version: `2\u001b[2J`, PID: os.Getpid()}); len(now.Askers) != 1 || now.Askers[0] != want {
		t.Errorf("%+v", now.Askers)
	}
	if !f.joins.Has(proc.Info{PID: os.Getpid(), Start: proc.Self()}) {
		t.Error("the companion is not told")
	}

	var j askers
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p, ok := proc.Lookup(other.Process.Pid)
	if !ok {
		t.Fatal("the other process is hidden")
	}
	j.add(Asker{Name: "other"}, p)
	j.add(Asker{}, proc.Info{PID: os.Getpid()})
	if list := j.list(); len(list) != 1 || list[0].Name != "other" {
		t.Errorf("%+v", list)
	}
	in.Close()
	_ = other.Wait()
	if list := j.list(); len(list) > 0 {
		t.Errorf("an ended process asks: %+v", list)
	}
}
