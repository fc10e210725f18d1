package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// TestMain lets this binary act as the processes of the tests.
func TestMain(m *testing.M) {
	switch os.Getenv("PROC_TEST") {
	case "sleep":
		time.Sleep(30 * time.Second)
	case "watch": // waits for its parent's end and reports when it noticed
		parent, _ := strconv.Atoi(os.Getenv("PROC_PARENT"))
		os.Stdout.WriteString("ready\n")
		if WaitParent(context.Background(), parent) == nil {
			os.Stdout.WriteString("gone\n")
		}
	case "parent": // starts a watcher with its own output, and ends when told to
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PROC_TEST=watch", "PROC_PARENT="+strconv.Itoa(os.Getpid()))
		cmd.Stdout = os.Stdout
		if cmd.Start() != nil {
			os.Exit(1)
		}
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	default:
		os.Exit(m.Run())
	}
}

func start(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROC_TEST="+what)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestAliveAndSame(t *testing.T) {
	for _, pid := range []int{0, -1, -12345} {
		if Alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	cmd := start(t, "sleep")
	pid := cmd.Process.Pid
	info, ok := Lookup(pid)
	if !ok || info.Parent != os.Getpid() || info.Name == "" || info.Start == 0 {
		t.Errorf("Lookup: %+v, %v", info, ok)
	}
	if !Alive(pid) || !Same(pid, info.Start) || !Same(pid, 0) {
		t.Error("a living process is not alive and itself")
	}
	if Same(pid, info.Start+1) {
		t.Error("a process is taken for an earlier one with its number")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if Alive(pid) || Same(pid, info.Start) {
		t.Error("a dead process is alive")
	}
	if _, ok := Lookup(pid); ok {
		t.Error("a dead process is known")
	}
	if Self() == 0 {
		t.Error("nothing known of this process")
	}
}

// SPEC L-2: the end of the parent is noticed within a second.
func TestWaitParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROC_TEST=parent")
	in, _ := cmd.StdinPipe()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, 6)
	if _, err := r.Read(buf); err != nil || string(buf) != "ready\n" {
		t.Fatalf("%q, %v", buf, err)
	}
	in.Close()
	cmd.Wait()
	watch := pace.Start(t)
	n, err := r.Read(buf)
	if err != nil || string(buf[:n]) != "gone\n" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if took := watch.Took(); took > pace.Slack*time.Second {
		t.Errorf("noticed after %v", took)
	}
}

func TestWaitParentCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := WaitParent(ctx, os.Getppid()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := WaitParent(t.Context(), os.Getppid()+1); err != nil {
		t.Errorf("a parent that has gone before: %v", err)
	}
}
