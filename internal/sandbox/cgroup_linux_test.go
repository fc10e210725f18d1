package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/internal/sandbox/cgroup"
)

// TestGroupThatIsNone: a run goes without a group that cannot be used, and leaves nothing behind.
func TestGroupThatIsNone(t *testing.T) {
	parent := t.TempDir()
	s := New(nil)
	s.groups = func() string { return parent }
	if r := runIn(t, s, Policy{}, Command{Args: []string{"echo", "ran"}}); string(r.Stdout) != "ran\n" {
		t.Errorf("%+v", r)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

// TestGroupInTheKernel: where this user may make cgroup v2 groups, a run's first process starts in its own group. What
// stays in the group is killed with it, and then the group is gone. TestGroup checks the counting.
func TestGroupInTheKernel(t *testing.T) {
	runIn(t, New(nil), Policy{}, Command{Args: []string{"true"}})
	parent := ""
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			if parent, err = os.MkdirTemp(f[1], "pollux-test-"); err == nil {
				break
			}
		}
	}
	if parent == "" || err != nil {
		t.Logf("this user may make no groups here (%v); the other tests stand in", err)
		return
	}
	t.Cleanup(func() {
		if err := os.Remove(parent); err != nil {
			t.Error(err)
		}
	})
	g, err := cgroup.Make(parent)
	if err != nil {
		t.Fatal(err)
	}
	stray := exec.Command("sleep", "1000")
	stray.SysProcAttr = &syscall.SysProcAttr{}
	if err := g.Start(stray); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(g.Dir, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(data)) != strconv.Itoa(stray.Process.Pid) {
		t.Errorf("the group holds %q, %v; not %d", data, err, stray.Process.Pid)
	}
	go func() { _ = stray.Wait() }()
	g.Remove()
	if exists(g.Dir) {
		t.Error("the group is still there")
	}
	s := New(nil)
	s.groups = func() string { return parent }
	seen := runIn(t, s, Policy{}, Command{Args: []string{"cat", "/proc/self/cgroup"}})
	t.Logf("a command sees its group as %q", seen.Stdout)
	if left, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf("%s%d-*", cgroup.Prefix, os.Getpid()))); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestGroup: memory is limited, by the kernel if a group is delegated to this user (it is gone afterwards), otherwise
// by sampling.
func TestGroup(t *testing.T) {
	parent := cgroup.Parent()
	t.Logf("delegated control group: %q", parent)
	r := runIn(t, New(nil), Policy{}, Command{Args: []string{"sh", "-c", `x=$(yes | head -c 300000000); sleep 1000; :`}, Limits: Limits{Memory: 64 * mib}})
	if r.Limit == nil || r.Limit.Kind != limitMemory {
		t.Errorf("%+v", r)
	}
	if parent == "" {
		return
	}
	if left, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf("%s%d-*", cgroup.Prefix, os.Getpid()))); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}
