package sandbox

import (
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

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// run is Run on Linux. Where the namespaces are not to be had it may go the
// lower way, when that was allowed and keeps what the policy promises.
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

// runOnce runs a command in one of the two ways.
func (s *Sandbox) runOnce(ctx context.Context, p Policy, c Command, reduced bool) (*Result, error) {
	setup, watched, err := s.plan(p, c)
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
	if r.record != nil || s.o.Records == "" { // else nothing was started
		r.result.Quarantined = watched.quarantine(0)
		r.record.done()
	}
	return r.result, err
}

// plan turns a policy and a command into the setup of the stage.
func (s *Sandbox) plan(p Policy, c Command) (*inside.Setup, *watch, error) {
	prog, err := s.find(c)
	if err != nil {
		return nil, nil, err
	}
	set, l, err := s.planFor(p, c, prog)
	if err != nil {
		return nil, nil, err
	}
	return set, &l.watched, nil
}

// planFor is plan for a program that was found.
func (s *Sandbox) planFor(p Policy, c Command, prog *program) (*inside.Setup, *layout, error) {
	l, err := s.layout(p, c, prog)
	if err != nil {
		return nil, nil, err
	}
	set := &inside.Setup{Version: inside.SetupVersion, Root: l.root, Path: prog.path, Args: c.Args, Canary: l.canary(), PIDMax: kernelAtLeast(6, 14),
		Limits: inside.Limits{CPU: c.Limits.CPU, Memory: c.Limits.Memory, Scratch: c.Limits.Scratch, FileSize: c.Limits.FileSize, Processes: c.Limits.Processes, Files: c.Limits.Files}}
	if name := c.Args[0]; strings.Contains(name, "/") && !filepath.IsAbs(name) {
		// Some programs look for themselves there, and the folder that it starts in may not be seen.
		set.Args = append([]string{prog.path}, c.Args[1:]...)
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
	for _, dir := range []string{c.Workspace, c.Dir} { // the last that can be seen
		if !filepath.IsAbs(dir) {
			continue // none was named
		}
		if dir := l.canonical(dir); l.visible(dir) && l.exists(dir) {
			set.Dir = dir
		}
	}
	return set, l, nil
}

// files adds the few files of /etc that tell who and where one is.
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

// path is where the command finds programs: the program's own folders, those of the user's PATH that it sees, the system's, and where the program lies.
func (l *layout) path(p Policy, prog *program) []string {
	dirs := slices.Clone(prog.pathDirs)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if p.EffectiveRead() >= permission.Home || filepath.IsAbs(dir) && l.visible(l.canonical(dir)) && l.exists(dir) {
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", filepath.Dir(prog.path)) // a toolchain's parts find each other
	var path []string
	for _, d := range dirs {
		if filepath.IsAbs(d) && !slices.Contains(path, d) {
			path = append(path, d)
		}
	}
	return path
}

// environment is the whole of what the command gets.
func (s *Sandbox) environment(p Policy, c Command, path []string, network *inside.Network) []string {
	env := []string{"PATH=" + strings.Join(path, ":"), "HOME=" + s.homeInside(), "TMPDIR=/tmp", "USER=" + user(), "LOGNAME=" + user(), "SHELL=/bin/sh",
		"LANG=" + or(os.Getenv("LANG"), "C.UTF-8"), "TERM=" + or(os.Getenv("TERM"), "dumb"),
		"LSAN_OPTIONS=detect_leaks=0"} // it needs ptrace, and fails a program that is in order
	if v := os.Getenv("LC_ALL"); v != "" {
		env = append(env, "LC_ALL="+v)
	}
	if network != nil {
		env = append(env, proxyVariables("http://127.0.0.1:"+strconv.Itoa(network.Proxy))...)
		if !slices.ContainsFunc(p.Hosts, loopback) {
			// A server and its client inside; what the policy names on this machine is reached through the proxy.
			env = append(env, "NO_PROXY="+withoutProxy, "no_proxy="+withoutProxy)
		}
	}
	return append(env, c.Env...)
}

// withoutProxy is what a command reaches without the proxy: itself.
const withoutProxy = "localhost,127.0.0.1,::1"

// loopback says whether an entry names this machine.
func loopback(h permission.Host) bool {
	addr, err := netip.ParseAddr(strings.Trim(h.Name, "[]"))
	return h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost") || err == nil && addr.IsLoopback()
}

// A run is one command from its start to its end.
//
// Goroutines: the caller's, which holds one thread, waits for the stage's
// process and starts the others; listen, which reads the stage's reports;
// one for each stream of the command; watch, which samples memory; and the
// gate's, where there are hosts. All are gone when do returns.
type run struct {
	s      *Sandbox
	c      Command
	policy Policy
	setup  *inside.Setup
	watch  *watch
	record *recordFile
	result *Result

	kill  context.CancelCauseFunc // ends the stage's process, for a reason
	stage *stageProcess
}

// do finds the stage's process, hands it the setup and waits for the end.
func (r *run) do(ctx context.Context) error {
	ctx, r.kill = context.WithCancelCause(ctx)
	defer r.kill(nil)
	// The death signal is tied to the thread that starts the process.
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
	defer r.stage.leaf.remove()
	defer r.stage.conn.Close()
	defer context.AfterFunc(ctx, r.stage.end)()
	if r.record, err = r.s.keep(r.watch, r.stage.cmd.Process.Pid, r.c.Limits.Time); err != nil {
		streams.closeTheirs()
		r.stage.discard()
		return err
	}
	heard := make(chan hearing, 1)
	go func() { heard <- r.listen(ctx, streams) }()
	waitErr := r.stage.cmd.Wait()
	h := <-heard // the other end is closed now
	h.close()
	streams.wait(r.result)
	if r.stage.leaf.exceeded() {
		r.kill(&LimitError{Kind: limitMemory, Limit: r.c.Limits.Memory})
	}
	return r.judge(ctx, h, waitErr)
}

// judge says what became of the command.
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
	case !h.ended && h.began: // somebody short of memory chose it
		r.result.Signal, r.result.Code = int(unix.SIGKILL), 128+int(unix.SIGKILL)
		return nil
	case !h.ended:
		return &SetupError{Phase: or(h.phase, "start"), Cause: fmt.Sprintf("the first process inside ended unexpectedly (%v)", waitErr), Fix: remedy("start", 0)}
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

// kernelLimit is the limit that the kernel kept by a signal, as far as that
// can be told: a shell passes on what happened to its last command.
func (r *run) kernelLimit(cpu int64) *LimitError {
	l := r.c.Limits
	signal := or(r.result.Signal, max(r.result.Code-128, 0))
	used := cpu >= int64(l.CPU)/4 // the kernel decides by ticks, which on a busy machine hit the wrong one
	switch {
	case r.result.Signal == int(unix.SIGXCPU), used && (signal == int(unix.SIGXCPU) || signal == int(unix.SIGKILL)):
		return &LimitError{Kind: limitCPU, Limit: int64(l.CPU)}
	case r.result.Signal == int(unix.SIGXFSZ):
		return &LimitError{Kind: limitFile, Limit: l.FileSize}
	}
	return nil
}

// startError says why the stage did not start; the usual reason is a machine
// that grants no user namespaces.
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
