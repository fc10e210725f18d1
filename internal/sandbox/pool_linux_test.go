package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// patience is how long a test waits for a condition.
const patience = 20 * time.Second

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come about: ", what)
		}
	}
}

// newPool makes a Pool with one waiting process.
func newPool(t testing.TB) *Pool {
	t.Helper()
	runIn(t, New(nil), Policy{}, Command{Args: []string{"true"}}) // skips the test if nothing can be kept ready
	p := NewPool(1)
	t.Cleanup(p.Close)
	p.wait(t)
	return p
}

func (p *Pool) wait(t testing.TB) {
	t.Helper()
	until(t, "a process is ready", func() bool { return len(p.ready) > 0 })
}

// waiting takes the waiting process out of a Pool, and puts it back.
func (p *Pool) waiting(t testing.TB) *stageProcess {
	t.Helper()
	p.wait(t)
	st := <-p.ready
	p.ready <- st
	return st
}

// gone says whether a process of the host has ended. A zombie counts as gone: some containers' first processes never
// wait for orphans.
func gone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(data), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

// TestPool: a run takes the waiting process, keeps its own policy, and leaves nothing. The next process is soon
// ready.
func TestPool(t *testing.T) {
	pool := newPool(t)
	place := newPlace(t)
	s := New(&Options{Home: place.home, Pool: pool})
	for _, policy := range []Policy{{}, {Read: permission.Workspace}, {Write: permission.Workspace}, {Hosts: hosts(t, "example.com")}} {
		pid := pool.waiting(t).cmd.Process.Pid
		r := runIn(t, s, policy, Command{Workspace: place.workspace, Stdin: strings.NewReader("input"),
			Args: []string{"sh", "-c", "cat; cat " + place.workspace + "/code; cat " + place.home + "/notes; exit 3"}})
		want := "input"
		if policy.EffectiveRead() >= permission.Workspace {
			want += "content of code"
		}
		if r.Code != 3 || string(r.Stdout) != want || r.Assurance != Full {
			t.Errorf("%+v: %d %q %s", policy, r.Code, r.Stdout, r.Stderr)
		}
		if !gone(pid) {
			t.Errorf("%+v: the process that waited, %d, did not serve it", policy, pid)
		}
	}
	pid := pool.waiting(t).cmd.Process.Pid
	pool.Close()
	if !gone(pid) {
		t.Error("Close leaves a process")
	}
	pool.Close()
	if r := runIn(t, s, Policy{}, Command{Args: []string{"true"}}); r.Code != 0 {
		t.Errorf("without a process that waits: %+v", r)
	}
}

// TestPoolLimits: limits hold in a process that was started before they were known.
func TestPoolLimits(t *testing.T) {
	pool := newPool(t)
	s := New(&Options{Pool: pool})
	r := runIn(t, s, Policy{}, Command{Args: append(daemon(marker(t)), "sleep", "1000"), Limits: Limits{Time: 300 * time.Millisecond}})
	if r.Limit == nil || r.Limit.Kind != limitTime {
		t.Errorf("%+v", r)
	}
	pool.wait(t)
	r = runIn(t, s, Policy{}, Command{Args: []string{"sh", "-c", "ulimit -n"}, Limits: Limits{Files: 99}})
	if string(r.Stdout) != "99\n" {
		t.Errorf("%q", r.Stdout)
	}
}

// TestPoolReplaces: a process that died, or that has other mounts than now, is not used.
func TestPoolReplaces(t *testing.T) {
	pool := newPool(t)
	s := New(&Options{Pool: pool})
	dead := pool.waiting(t)
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the process is dead", func() bool { return !dead.alive() })
	if r := runIn(t, s, Policy{}, Command{Args: []string{"echo", "ran"}}); string(r.Stdout) != "ran\n" {
		t.Errorf("%+v", r)
	}
	stale := pool.waiting(t)
	stale.mounts = [32]byte{}
	if r := runIn(t, s, Policy{}, Command{Args: []string{"echo", "ran"}}); string(r.Stdout) != "ran\n" {
		t.Errorf("%+v", r)
	}
	if pid := stale.cmd.Process.Pid; !gone(pid) {
		t.Error("it is still there")
	}
}

// TestPoolDiesWithPollux: kill -9 of pollux ends the waiting process.
func TestPoolDiesWithPollux(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-victim", "pool")
	cmd.Env = append(os.Environ(), "VICTIM=pool")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil || pid == 0 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if r := New(nil).Check(context.Background()); !r.Enforced {
			t.Skip(r.Summary)
		}
		t.Fatal("no process is kept ready: ", err)
	}
	if data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err != nil || !strings.HasPrefix(string(data), inside.Name) {
		t.Errorf("%q %v", data, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, "the process that waits ends with pollux", func() bool { return gone(pid) })
}

// runPoolVictim is a pollux with a waiting process that is about to be killed.
func runPoolVictim() int {
	p := NewPool(1)
	st := <-p.ready
	fmt.Println(st.cmd.Process.Pid)
	select {}
}
