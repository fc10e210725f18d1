package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// runSetup runs a command as Run does, with an edited setup.
func runSetup(s *Sandbox, p Policy, c Command, edit func(*inside.Setup)) (*Result, error) {
	c.Limits = c.Limits.filled()
	set, _, err := s.setup(p, c)
	if err != nil {
		return nil, err
	}
	edit(set)
	r := &run{s: s, c: c, setup: set, policy: p, result: &Result{Assurance: Full}}
	return r.result, r.do(context.Background())
}

// TestEveryStepFails: whichever step fails, the command is not run, the error names the step, the reason and what to
// do, and nothing is left (SPEC S-1).
func TestEveryStepFails(t *testing.T) {
	runIn(t, New(nil), Policy{}, Command{Args: []string{"true"}})
	place := newPlace(t)
	before := strings.Join(leftovers(t), "\n")
	pooled := New(&Options{Home: place.home, Pool: newPool(t)})
	mark := filepath.Join(place.workspace, "ran")
	c := Command{Args: []string{"touch", mark}, Workspace: place.workspace}
	policy := Policy{Write: permission.Workspace, Hosts: hosts(t, "example.com")}
	for _, phase := range []string{"mounts", "network", "system", "limits", "privileges", "landlock", "seccomp", "check"} { // the steps of package inside
		for _, s := range []*Sandbox{place.s, pooled} {
			_, err := runSetup(s, policy, c, func(set *inside.Setup) { set.Fail = phase })
			setup := (*SetupError)(nil)
			if !errors.As(err, &setup) || !errors.Is(err, ErrSetup) || setup.Phase != phase || setup.Cause == "" || setup.Fix == "" {
				t.Errorf("%s: %#v", phase, err)
			}
		}
	}
	if exists(mark) {
		t.Error("the command was run")
	}
	pooled.o.Pool.Close()
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if after := strings.Join(leftovers(t), "\n"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestRealFailures: realistic failures of a step, and what is said about them.
func TestRealFailures(t *testing.T) {
	runIn(t, New(nil), Policy{}, Command{Args: []string{"true"}})
	for name, test := range map[string]struct {
		edit       func(*inside.Setup)
		phase, fix string
		is         error
	}{
		"a source that has gone": {func(s *inside.Setup) {
			s.Mounts = append(s.Mounts, inside.Mount{Show: inside.ShowBind, Source: "/no/such", Target: "/x"})
		}, "mounts", "try again", ErrSetup},
		"a source that became a link": {func(s *inside.Setup) {
			s.Mounts = append(s.Mounts, inside.Mount{Show: inside.ShowBind, Source: "/proc/self/cwd", Target: "/x"})
		}, "mounts", "try again", ErrSetup},
		"a port that is taken":       {func(s *inside.Setup) { s.Net = &inside.Network{Proxy: 3128, Ports: []int{3128}} }, "network", "try again", ErrSetup},
		"a layer that does not hold": {func(s *inside.Setup) { s.Canary = []string{"/usr"} }, "check", "update it", ErrSetup},
		"a program that is not seen": {func(s *inside.Setup) { s.Path = "/no/such" }, inside.PhaseCommand, "--explain", ErrCommand},
		"a program that is none":     {func(s *inside.Setup) { s.Path = "/etc/passwd" }, inside.PhaseCommand, "not executable", ErrCommand},
		"another version of pollux":  {func(s *inside.Setup) { s.Version = 0 }, "start", "try again", ErrSetup},
	} {
		_, err := runSetup(New(nil), Policy{}, Command{Args: []string{"true"}}, test.edit)
		setup := (*SetupError)(nil)
		if !errors.As(err, &setup) || !errors.Is(err, test.is) || setup.Phase != test.phase || !strings.Contains(setup.Fix, test.fix) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRemedies: every step and every reason has a remedy.
func TestRemedies(t *testing.T) {
	for _, phase := range []string{"start", "mounts", "network", "system", "limits", "privileges", "landlock", "seccomp", "check", inside.PhaseCommand} {
		for errno := range syscall.Errno(134) {
			if remedy(phase, errno) == "" {
				t.Errorf("%s, %v: none", phase, errno)
			}
		}
	}
}

// TestInContainers: in namespaces like a container's, pollux refuses with the reason and its remedy.
func TestInContainers(t *testing.T) {
	runIn(t, New(nil), Policy{}, Command{Args: []string{"true"}})
	for how, want := range map[string][]string{
		"no-namespaces": {"phase userns", "user.max_user_namespaces"},
		"masked-proc":   {"phase mounts", "systempaths=unconfined"},
	} {
		cmd := exec.Command("/proc/self/exe", "-nested", how)
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v %s", how, err, out)
		}
		for _, text := range want {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s: %s", how, out)
			}
		}
		if strings.Contains(string(out), "ran") {
			t.Errorf("%s: the command was run", how)
		}
	}
}

// beContainer makes this process's namespaces like a container's.
func beContainer(how string) error {
	switch how {
	case "no-namespaces":
		return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	case "masked-proc":
		return errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, ""), unix.Mount("/dev/null", "/proc/keys", "", unix.MS_BIND, ""))
	}
	return nil
}

// children lists the remaining children of this process's threads.
func children(t *testing.T) []string {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil { // otherwise the thread ended
			all = append(all, strings.Fields(string(data))...)
		}
	}
	return all
}
