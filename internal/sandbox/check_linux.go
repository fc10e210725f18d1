package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/cgroup"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

// report is Check on Linux.
func (s *Sandbox) report(ctx context.Context) Report {
	var uts unix.Utsname
	release := "unknown"
	if unix.Uname(&uts) == nil {
		release = unix.ByteSliceToString(uts.Release[:])
	}
	_, err := s.attempt(ctx, Policy{Hosts: []permission.Host{{Text: "https://host.invalid", Scheme: "https", Name: "host.invalid", Ports: []int{443}}}}, false)
	setup := (*SetupError)(nil)
	phase := ""
	if errors.As(err, &setup) {
		phase = setup.Phase
	}
	abi := kernel.LandlockVersion()
	r := Report{Enforced: err == nil, Layers: []Layer{
		{"kernel", kernelAtLeast(5, 12), "Linux " + release + "; at least 5.12"},
		{"namespaces", phase != "userns" && phase != "mounts", "user, mount, process, network, IPC, host name and cgroup, with a root of the sandbox's own"},
		{"network", phase == "", "a loopback interface of its own; allowed hosts through pollux alone"},
		{"Landlock", abi >= 1, landlockDetail(abi)},
		{"seccomp", phase != "seccomp", "about 100 system calls refused"},
		{"self-check", phase != "check", "what must fail is tried before each command"},
		{"process limit", kernelAtLeast(6, 14), "for all processes together since Linux 6.14; before, only for users other than root"},
		{"cgroup", cgroup.Parent() != "", cgroupDetail()},
	}}
	if err == nil {
		r.Summary = "Every policy can be enforced on this machine."
		return r
	}
	at := 1
	if phase == "network" {
		at = 2
	}
	r.Layers[at].Detail += ": " + err.Error()
	if _, err := s.attempt(ctx, Policy{}, true); err == nil {
		r.Reduced = true
	}
	r.Summary = "No policy can be enforced on this machine: commands are refused."
	_, without := s.attempt(ctx, Policy{}, false)
	switch {
	case without == nil:
		r.Summary = "Only policies without hosts can be enforced on this machine; others are refused."
	case r.Reduced:
		r.Summary = "Only with --reduced, and only without writing, hosts, home and full, can commands be run on this machine; others are refused."
	}
	if setup != nil && setup.Fix != "" {
		r.Fixes = append(r.Fixes, setup.Fix)
	}
	return r
}

// attempt builds a sandbox around a program that does nothing.
func (s *Sandbox) attempt(ctx context.Context, p Policy, reduced bool) (*Result, error) {
	c := Command{Args: []string{"true"}}
	c.Limits = c.Limits.filled()
	return s.runOnce(ctx, p, c, reduced)
}

func landlockDetail(abi int) string {
	switch {
	case abi == 0:
		return "the kernel has none; the namespaces hold without it"
	case abi < 6:
		return fmt.Sprintf("version %d; from 6 on it keeps signals in as well", abi)
	}
	return fmt.Sprintf("version %d: files, devices, TCP, signals, abstract sockets", abi)
}

func cgroupDetail() string {
	if dir := cgroup.Parent(); dir != "" {
		return "memory and processes are limited by the kernel, below " + dir
	}
	return "none is delegated to this user; memory is watched by pollux instead, which sees an excess some milliseconds late"
}

// namespaceCause explains why user namespaces were refused.
func namespaceCause(errno syscall.Errno) string {
	switch errno {
	case unix.ENOSPC, unix.EUSERS:
		return "this user may make no user namespaces (user.max_user_namespaces)"
	case unix.EPERM, unix.EACCES:
		return "the system forbids user namespaces to this program"
	case unix.EINVAL, unix.ENOSYS:
		return "the kernel has no user namespaces, or is older than 5.12"
	case unix.EAGAIN, unix.ENOMEM:
		return "no process could be started: the machine, or this user, is at a limit"
	}
	return errno.Error()
}

// namespaceFix returns what helps, as far as the machine shows the reason.
func namespaceFix() string {
	switch {
	case sysctl("user/max_user_namespaces") == "0":
		return "allow user namespaces: sudo sysctl user.max_user_namespaces=15000"
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		return "allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1"
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "allow them to pollux: pollux sandbox check --apparmor | sudo tee /etc/apparmor.d/pollux && sudo apparmor_parser -r /etc/apparmor.d/pollux"
	case exists("/.dockerenv") || exists("/run/.containerenv"):
		return "this is a container: start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined, or run pollux outside"
	}
	return "run \"pollux sandbox check\" where namespaces are allowed, or ask whoever looks after this machine to allow user namespaces"
}

// remedy returns what helps when a step inside failed. errno is 0 if the kernel was not the reason.
func remedy(phase string, errno syscall.Errno) string {
	refused := errno == unix.EPERM || errno == unix.EACCES
	switch {
	case errno == unix.ENOSYS:
		return "the kernel is too old, or a filter of a container hides its calls: Linux 5.12 or newer is needed"
	case phase == inside.PhaseCommand && errno == unix.ENOENT:
		return "the program, or the interpreter that its first line names, is not seen from inside: \"pollux sandbox --explain\" shows what is"
	case phase == inside.PhaseCommand && refused:
		return "the file is not executable, or lies where the policy shows nothing"
	case phase == inside.PhaseCommand:
		return "\"pollux sandbox --explain\" shows what the command would see"
	case phase == "mounts" && refused && maskedProc():
		return "parts of /proc are covered here, as in a container, and then Linux lets nobody have a /proc of their own: start the container with --security-opt systempaths=unconfined, or run pollux outside"
	case refused:
		return namespaceFix()
	case phase == "mounts" && (errno == unix.ENOENT || errno == unix.ELOOP):
		return "it was changed while the sandbox was built: try again"
	case phase == "check":
		return "this kernel reports a protection that does not hold: update it, and do not run the command without a sandbox"
	case errno == unix.ENOMEM || errno == unix.EAGAIN || errno == unix.EMFILE || errno == unix.ENFILE || errno == unix.ENOSPC:
		return "the machine is short of something: try again when it has less to do"
	}
	return "try again; \"pollux sandbox check\" says what this machine can enforce"
}

// maskedProc says whether something is mounted in /proc, as in containers.
func maskedProc() bool {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], "/proc/") && fields[4] != "/proc/sys/fs/binfmt_misc" {
			return true
		}
	}
	return false
}

func sysctl(name string) string {
	data, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// kernelAtLeast compares the running kernel's version.
func kernelAtLeast(major, minor int) bool {
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return false
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}
