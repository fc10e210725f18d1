package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestLeaf: what is written into a group, and which groups are swept. A plain folder stands for the kernel's.
func TestLeaf(t *testing.T) {
	parent := t.TempDir()
	stale := filepath.Join(parent, cgroupPrefix+"999999999-1")
	ours := filepath.Join(parent, fmt.Sprintf("%s%d-1", cgroupPrefix, os.Getpid()))
	foreign := filepath.Join(parent, "session.scope")
	if err := errors.Join(os.Mkdir(stale, 0o700), os.Mkdir(ours, 0o700), os.Mkdir(foreign, 0o700)); err != nil {
		t.Fatal(err)
	}
	g, err := makeLeaf(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.limit(Limits{Memory: 100 * mib, Processes: 400}); err != nil {
		t.Fatal(err)
	}
	for dir, there := range map[string]bool{stale: false, ours: true, foreign: true, g.dir: true} {
		if exists(dir) != there {
			t.Errorf("%s: there should be %v", dir, there)
		}
	}
	for file, want := range map[string]string{"memory.max": "138412032", "pids.max": "416", "memory.oom.group": "1", "memory.swap.max": "0"} {
		if got, err := os.ReadFile(filepath.Join(g.dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %s", file, got, err, want)
		}
	}
	for content, want := range map[string]bool{"low 0\noom 1\noom_kill 0\n": false, "low 0\noom 1\noom_kill 3\n": true, "": false} {
		if err := os.WriteFile(filepath.Join(g.dir, "memory.events"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if g.exceeded() != want {
			t.Errorf("%q: %v", content, !want)
		}
	}
	var none *leaf
	none.remove()
	if none.exceeded() {
		t.Error("no group is exceeded")
	}
}

// TestDelegated: the nearest group above this process's own that counts memory and processes and lets this user make
// groups.
func TestDelegated(t *testing.T) {
	root := t.TempDir()
	for dir, active := range map[string]string{"": "cpu memory pids", "user.slice": "memory pids", "user.slice/user-1.slice/user@1.service": "cpu memory pids", "user.slice/user-1.slice/user@1.service/app.slice": "cpu", "user.slice/user-1.slice/user@1.service/app.slice/x.scope": "memory pids"} {
		path := filepath.Join(root, dir)
		if err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, "cgroup.subtree_control"), []byte(active+"\n"), 0o600), os.WriteFile(filepath.Join(path, "cgroup.procs"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for own, want := range map[string]string{
		"/user.slice/user-1.slice/user@1.service/app.slice/x.scope": "/user.slice/user-1.slice/user@1.service", // app.slice counts no memory
		"/user.slice/user-1.slice/session-2.scope":                  "/user.slice",
		"/init.scope": "",
	} {
		if got := delegated(root, own); got != filepath.Join(root, want) {
			t.Errorf("%s: %q, want %q", own, got, filepath.Join(root, want))
		}
	}
	if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("hugetlb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := delegated(root, "/init.scope"); got != "" {
		t.Errorf("without controllers: %q", got)
	}
}

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

// TestLeafInTheKernel: where this user may make cgroup v2 groups, a run's first process starts in its own group. What
// stays in the group is killed with it, and then the group is gone. TestGroup checks the counting.
func TestLeafInTheKernel(t *testing.T) {
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
	g, err := makeLeaf(parent)
	if err != nil {
		t.Fatal(err)
	}
	stray := exec.Command("sleep", "1000")
	stray.SysProcAttr = &syscall.SysProcAttr{}
	if err := g.start(stray); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(data)) != strconv.Itoa(stray.Process.Pid) {
		t.Errorf("the group holds %q, %v; not %d", data, err, stray.Process.Pid)
	}
	go func() { _ = stray.Wait() }()
	g.remove()
	if exists(g.dir) {
		t.Error("the group is still there")
	}
	s := New(nil)
	s.groups = func() string { return parent }
	seen := runIn(t, s, Policy{}, Command{Args: []string{"cat", "/proc/self/cgroup"}})
	t.Logf("a command sees its group as %q", seen.Stdout)
	if left, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf("%s%d-*", cgroupPrefix, os.Getpid()))); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestGroup: memory is limited, by the kernel if a group is delegated to this user (it is gone afterwards), otherwise
// by sampling.
func TestGroup(t *testing.T) {
	parent := cgroupParent()
	t.Logf("delegated control group: %q", parent)
	r := runIn(t, New(nil), Policy{}, Command{Args: []string{"sh", "-c", `x=$(yes | head -c 300000000); sleep 1000; :`}, Limits: Limits{Memory: 64 * mib}})
	if r.Limit == nil || r.Limit.Kind != limitMemory {
		t.Errorf("%+v", r)
	}
	if parent == "" {
		return
	}
	if left, _ := filepath.Glob(filepath.Join(parent, fmt.Sprintf("%s%d-*", cgroupPrefix, os.Getpid()))); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}
