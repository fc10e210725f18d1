package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// A process that is branded has branded what it had started before, and what it starts later, however that leaves; nothing takes the
// brand away but root.
func TestBrand(t *testing.T) {
	cmd := exec.Command("bash", "-c", `sleep 60 & echo $!; read; setsid -f env -i bash -c 'echo $$; exec sleep 60'; read; kill %1`)
	in, out := child.Start(t, cmd)
	lines := bufio.NewReader(out)
	number := func() (pid int) {
		t.Helper()
		line, err := lines.ReadString('\n')
		if _, err2 := fmt.Sscan(line, &pid); err != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", line, err, err2)
		}
		return pid
	}
	parent, _ := Lookup(cmd.Process.Pid)
	early := number()
	if Branded(parent.PID) || Branded(early) {
		t.Fatal("branded by nobody")
	}
	other := parent
	if other.Start--; Brand(other) || Branded(parent.PID) {
		t.Error("a process that got the number of an ended one is branded")
	}
	for range 2 {
		if !Brand(parent) || !Branded(parent.PID) {
			t.Fatal("not branded")
		}
	}
	if len(childrenOf(parent.PID)) > 0 && !Branded(early) {
		t.Error("what it had started before is not branded")
	}
	fmt.Fprintln(in)
	left := number()
	if info, _ := Lookup(left); info.Parent == parent.PID || !Branded(left) {
		t.Errorf("process %d, which has left its parents: branded %v", left, Branded(left))
	}
	fmt.Fprintln(in)
	in.Close()
	_ = cmd.Wait()
	if p, err := exec.Command("kill", fmt.Sprint(left)).CombinedOutput(); err != nil {
		t.Errorf("%s, %v", p, err)
	}
	if Branded(1<<30) || Branded(0) {
		t.Error("no process is branded")
	}
}

// Who is not root, or is it only in a user namespace of their own, cannot take the brand away.
func TestBrandStays(t *testing.T) {
	for name, script := range map[string]string{
		"raised":               `ulimit -x unlimited`,
		"raised as a new root": `unshare -Ur bash -c 'ulimit -x unlimited && ulimit -Hx' | grep unlimited`,
	} {
		cmd := exec.Command("bash", "-c", "ulimit -x 1000000; "+script+"; ulimit -Hx")
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: usertest.ID, Gid: usertest.ID}}
		}
		out, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(out)) != "1000000" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// A process that has changed its group, as by sg, may not be asked for its limits. Its brand is seen all the same.
func TestBrandInAnotherGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: nobody's group can be changed")
		return
	}
	for limit, want := range map[string]bool{"1000000": true, "unlimited": false} {
		cmd := exec.Command("bash", "-c", "ulimit -x "+limit+"; echo; read")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: usertest.ID, Gid: usertest.ID - 1}}
		in, out := child.Start(t, cmd)
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		usertest.Do(t, func() {
			if got := Branded(cmd.Process.Pid); got != want {
				t.Errorf("with the limit %s it is branded: %v", limit, got)
			}
		})
		in.Close()
		_ = cmd.Wait()
	}
}
