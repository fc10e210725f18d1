package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/filter"
	"github.com/pollux-companion/pollux/internal/sandbox/gate"
	"github.com/pollux-companion/pollux/internal/sandbox/program"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// run is Run on Linux. If namespaces cannot be made, it uses the reduced sandbox, provided that is allowed and keeps
// what the policy promises.
func (s *Sandbox) run(ctx context.Context, p Policy, c Command) (r *Result, err error) {
	if earlier := s.finish(); len(earlier) > 0 {
		defer func() {
			if r == nil {
				r = &Result{}
			}
			r.Quarantined = append(earlier, r.Quarantined...)
		}()
	}
	r, err = s.runOnce(ctx, p, c, false)
	setup := (*SetupError)(nil)
	if !s.o.AllowReduced || !errors.As(err, &setup) || !slices.Contains([]string{"userns", "mounts", "network"}, setup.Phase) {
		return r, err
	}
	if p.EffectiveRead() > permission.Workspace || p.Write > permission.None || len(p.Hosts) > 0 || len(c.Copies) > 0 {
		return nil, fmt.Errorf("%w; the reduced sandbox cannot stand in: it knows neither hosts, nor writing, nor reading beyond the workspace", err)
	}
	return s.runOnce(ctx, p, c, true)
}

// runOnce runs a command with or without namespaces.
func (s *Sandbox) runOnce(ctx context.Context, p Policy, c Command, reduced bool) (*Result, error) {
	setup, watched, err := s.setup(p, c)
	if err != nil {
		return nil, err
	}
	r := &run{s: s, c: c, setup: setup, policy: p, watch: watched, result: &Result{Assurance: Full}}
	if reduced {
		private, err := reduce(setup)
		if err != nil {
			return nil, &SetupError{Phase: "start", Cause: err.Error(), Fix: remedy("start", 0)}
		}
		defer os.RemoveAll(private)
		if setup.Filter, err = compile(setup.Net != nil, true); err != nil {
			return nil, err
		}
		r.result.Assurance = Reduced
	}
	err = r.do(ctx)
	if r.record != nil || s.o.Records == "" { // otherwise nothing was started
		r.result.Quarantined = watched.quarantine(0)
		r.record.done()
	}
	return r.result, err
}

// compile assembles the filter of a sandbox.
func compile(network, reduced bool) ([]syscall.SockFilter, error) {
	program, err := filter.Compile(network, reduced)
	if err != nil {
		return nil, &SetupError{Phase: "seccomp", Cause: err.Error(), Fix: remedy("seccomp", 0)}
	}
	return program, nil
}

// setup turns a policy and a command into a setup for the stage.
func (s *Sandbox) setup(p Policy, c Command) (*inside.Setup, *watch, error) {
	prog, err := s.find(c)
	if err != nil {
		return nil, nil, err
	}
	set, l, err := s.setupOf(p, c, prog)
	if err != nil {
		return nil, nil, err
	}
	return set, &l.watched, nil
}

// setupOf is setup for a program that is already found.
func (s *Sandbox) setupOf(p Policy, c Command, prog *program.Program) (*inside.Setup, *layout, error) {
	l, err := s.layout(p, c, prog)
	if err != nil {
		return nil, nil, err
	}
	set := &inside.Setup{Version: inside.SetupVersion, Root: l.root, Path: prog.Path, Args: c.Args, Canary: l.canary(), PIDMax: kernelAtLeast(6, 14),
		Limits: inside.Limits{CPU: c.Limits.CPU, Memory: c.Limits.Memory, Scratch: c.Limits.Scratch, FileSize: c.Limits.FileSize, Processes: c.Limits.Processes, Files: c.Limits.Files}}
	if name := c.Args[0]; strings.Contains(name, "/") && !filepath.IsAbs(name) {
		// Some programs locate themselves by Args[0], and a relative one may not be visible from the start folder.
		set.Args = append([]string{prog.Path}, c.Args[1:]...)
	}
	if set.Net, err = network(p); err != nil {
		return nil, nil, err
	}
	if set.Filter, err = compile(set.Net != nil, false); err != nil {
		return nil, nil, err
	}
	l.files(s, set.Net != nil)
	set.Mounts = l.sorted()
	set.Env = s.environment(p, c, l.path(p, prog), set.Net)
	set.Dir = "/tmp"
	for _, dir := range []string{c.Workspace, c.Dir} { // the last visible one wins
		if !filepath.IsAbs(dir) {
			continue // not set
		}
		if dir := l.canonical(dir); l.visible(dir) && l.exists(dir) {
			set.Dir = dir
		}
	}
	return set, l, nil
}

// files adds the files of /etc that identify the user and the network.
func (l *layout) files(s *Sandbox, network bool) {
	resolver, hosts := "# no network\n", "127.0.0.1 localhost sandbox\n"
	if network {
		resolver = "nameserver 127.0.0.1\noptions timeout:5 attempts:1\n"
	}
	all := map[string]string{"resolv.conf": resolver, "hosts": hosts, "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n"}
	if !l.root.Host {
		name, uid, gid := user(), os.Getuid(), os.Getgid()
		all["passwd"] = fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", name, uid, gid, s.homeInside())
		all["group"] = fmt.Sprintf("%s:x:%d:\n", name, gid)
	}
	for file, data := range all {
		target := "/etc/" + file
		if l.root.Host {
			if target = l.canonical(target); !l.exists(target) {
				continue
			}
		}
		l.add(inside.Mount{Show: inside.ShowFile, Target: target, Data: data})
	}
}

func user() string {
	if os.Getuid() == 0 {
		return "root"
	}
	return "user"
}

// path returns the command's PATH: the program's own folders, the visible folders of the user's PATH, the system's,
// and the folder of the program.
func (l *layout) path(p Policy, prog *program.Program) []string {
	dirs := slices.Clone(prog.PathDirs)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if p.EffectiveRead() >= permission.Home || filepath.IsAbs(dir) && l.visible(l.canonical(dir)) && l.exists(dir) {
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", filepath.Dir(prog.Path)) // so that the parts of a toolchain find each other
	var path []string
	for _, d := range dirs {
		if filepath.IsAbs(d) && !slices.Contains(path, d) {
			path = append(path, d)
		}
	}
	return path
}

// environment returns the whole environment of the command.
func (s *Sandbox) environment(p Policy, c Command, path []string, network *inside.Network) []string {
	env := []string{"PATH=" + strings.Join(path, ":"), "HOME=" + s.homeInside(), "TMPDIR=/tmp", "USER=" + user(), "LOGNAME=" + user(), "SHELL=/bin/sh",
		"LANG=" + cmp.Or(os.Getenv("LANG"), "C.UTF-8"), "TERM=" + cmp.Or(os.Getenv("TERM"), "dumb"),
		"LSAN_OPTIONS=detect_leaks=0"} // the leak check needs ptrace and would fail a correct program
	if v := os.Getenv("LC_ALL"); v != "" {
		env = append(env, "LC_ALL="+v)
	}
	if network != nil {
		env = append(env, gate.Variables("http://127.0.0.1:"+strconv.Itoa(network.Proxy))...)
		if !slices.ContainsFunc(p.Hosts, loopback) {
			// So that a server and its client inside talk directly. Loopback addresses that the policy names are the
			// host's, and need the proxy.
			env = append(env, "NO_PROXY="+withoutProxy, "no_proxy="+withoutProxy)
		}
	}
	return append(env, c.Env...)
}

// withoutProxy lists what a command reaches without the proxy: itself.
const withoutProxy = "localhost,127.0.0.1,::1"

// loopback says whether an entry of the policy names this machine.
func loopback(h permission.Host) bool {
	addr, err := netip.ParseAddr(strings.Trim(h.Name, "[]"))
	return h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost") || err == nil && addr.IsLoopback()
}

// A run is one command from its start to its end.
//
// Goroutines: the caller's, which holds one thread, waits for the stage's process and starts the others; listen,
// which reads the stage's reports; one for each stream of the command; watchMemory's; and the gate's, if there are
// hosts. All end before do returns, except a read of Stdin that blocks.
type run struct {
	s      *Sandbox
	c      Command
	policy Policy
	setup  *inside.Setup
	watch  *watch
	record *recordFile
	result *Result

	kill  context.CancelCauseFunc // ends the stage's process, with a reason
	stage *stageProcess
}

// do takes a stage process, sends it the setup and waits for the end.
func (r *run) do(ctx context.Context) error {
	ctx, r.kill = context.WithCancelCause(ctx)
	defer r.kill(nil)
	// Pdeathsig fires when the thread that started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	streams, err := newStreams(&r.c, r.kill)
	if err != nil {
		return &SetupError{Phase: "start", Cause: err.Error(), Fix: remedy("start", 0)}
	}
	defer streams.close()
	r.stage, err = r.s.stageFor(r.setup.Reduced, r.c.Limits)
	if err != nil {
		streams.closeTheirs()
		return startError(err)
	}
	defer r.stage.begun()
	defer r.stage.group.Remove()
	defer r.stage.conn.Close()
	defer context.AfterFunc(ctx, r.stage.end)()
	// The record must be on disk before listen sends the setup: from then on the command may write, and pollux may be
	// killed.
	if r.record, err = r.s.keep(r.watch, r.stage.cmd.Process.Pid, r.c.Limits.Time); err != nil {
		streams.closeTheirs()
		r.stage.discard()
		return err
	}
	heard := make(chan hearing, 1)
	go func() { heard <- r.listen(ctx, streams) }()
	waitErr := r.stage.cmd.Wait()
	h := <-heard // the stage's end is closed now
	h.close()
	streams.wait(r.result)
	if r.stage.group.Exceeded() {
		r.kill(&LimitError{Kind: limitMemory, Limit: r.c.Limits.Memory})
	}
	if err := r.judge(ctx, h, waitErr); err != nil {
		return err
	}
	r.result.Missed = streams.missed(r.policy, r.result)
	return nil
}

// judge turns what happened into the result or an error.
func (r *run) judge(ctx context.Context, h hearing, waitErr error) error {
	limit := (*LimitError)(nil)
	cause := context.Cause(ctx)
	switch {
	case h.failed != nil:
		return h.failed
	case errors.As(cause, &limit):
		r.result.Limit, r.result.Code = limit, 137
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !h.ended && h.began: // the kernel killed the stage, short of memory
		r.result.Signal, r.result.Code = int(unix.SIGKILL), 128+int(unix.SIGKILL)
		return nil
	case !h.ended:
		return &SetupError{Phase: cmp.Or(h.phase, "start"), Cause: fmt.Sprintf("the first process inside ended unexpectedly (%v)", waitErr), Fix: remedy("start", 0)}
	}
	status := unix.WaitStatus(h.status)
	r.result.Code = status.ExitStatus()
	if status.Signaled() {
		r.result.Signal = int(status.Signal())
		r.result.Code = 128 + r.result.Signal
	}
	r.result.Memory = max(r.result.Memory, h.memory)
	if r.result.Limit = r.kernelLimit(h.cpu); r.result.Limit != nil {
		r.result.Code = 137
	}
	return nil
}

// kernelLimit returns the limit that the kernel enforced by a signal, as far as it can be told: a shell passes on its
// last command's signal as an exit code.
func (r *run) kernelLimit(cpu int64) *LimitError {
	l := r.c.Limits
	signal := cmp.Or(r.result.Signal, max(r.result.Code-128, 0))
	used := cpu >= int64(l.CPU)/4 // the kernel counts by ticks, which are inexact on a busy machine
	switch {
	case r.result.Signal == int(unix.SIGXCPU), used && (signal == int(unix.SIGXCPU) || signal == int(unix.SIGKILL)):
		return &LimitError{Kind: limitCPU, Limit: int64(l.CPU)}
	case r.result.Signal == int(unix.SIGXFSZ):
		return &LimitError{Kind: limitFile, Limit: l.FileSize}
	}
	return nil
}

// startError says why the stage did not start. The usual reason is a machine that forbids user namespaces.
func startError(err error) error {
	e := &SetupError{Phase: "userns", Cause: err.Error()}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		e.Cause = namespaceCause(errno)
		e.Fix = namespaceFix()
		if errno == unix.EAGAIN || errno == unix.ENOMEM || errno == unix.EMFILE || errno == unix.ENFILE {
			e.Phase, e.Fix = "start", remedy("start", errno)
		}
	}
	return e
}

// setTimer ends the command when its time is up.
func (r *run) setTimer() *time.Timer {
	limit := r.c.Limits.Time
	return time.AfterFunc(limit, func() { r.kill(&LimitError{Kind: limitTime, Limit: int64(limit)}) })
}
