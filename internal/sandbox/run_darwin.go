package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/gate"
	"github.com/pollux-companion/pollux/internal/sandbox/program"
)

// seatbeltProgram applies a profile to itself and then becomes the command.
const seatbeltProgram = "/usr/bin/sandbox-exec"

// systemFolders are shown in every sandbox.
func systemFolders() []string { return systemReads() }

// A run is one command from its start to its end.
type run struct {
	s       *Sandbox
	p       Policy
	c       Command
	private string     // the command's temporary folder
	gate    *gate.Gate // nil without hosts
	result  *Result
}

// run is Run on macOS: a Seatbelt profile, a private folder, and a session of the command's own that is killed as a
// whole.
func (s *Sandbox) run(ctx context.Context, p Policy, c Command) (*Result, error) {
	if _, err := os.Stat(seatbeltProgram); err != nil {
		return nil, &UnsupportedError{Feature: "Seatbelt", Cause: err.Error(), Fix: "use a macOS that has " + seatbeltProgram}
	}
	private, err := os.MkdirTemp("", "pollux-sandbox-")
	if err != nil {
		return nil, &SetupError{Phase: "start", Cause: err.Error()}
	}
	defer os.RemoveAll(private)
	private = paths.Real(private)
	c, copies, err := putCopies(c, private)
	if err != nil {
		return nil, &SetupError{Phase: "mounts", Cause: err.Error()}
	}
	r := &run{s: s, p: p, c: c, private: private, result: &Result{Assurance: Full}}
	prog, err := s.find(c)
	if err != nil {
		return nil, err
	}
	workspace, err := s.workspace(p, c)
	if err != nil {
		return nil, err
	}
	if len(p.Hosts) > 0 {
		if err := s.checkNode(ctx, prog); err != nil {
			return nil, err
		}
	}
	b := seatbeltFor(p, s.home, workspace, r.private, append(prog.ReadOnly, c.ReadOnly...), s.named(p))
	b.protected = append(b.protected, copies...)
	if len(p.Hosts) > 0 {
		key := rand.Text() // any program of this machine can connect; only the command gets this
		g, port, err := s.openProxy(ctx, p, key)
		if err != nil {
			return nil, &SetupError{Phase: "network", Cause: err.Error()}
		}
		r.gate = g
		defer func() { r.result.Denials = g.Close() }()
		b.proxy = port
		c.Env = append(gate.Variables("http://pollux:"+key+"@127.0.0.1:"+strconv.Itoa(port)), c.Env...)
	}
	err = r.start(ctx, b, prog, workspace, c.Env)
	return r.result, err
}

// named lists what is hidden besides the usual paths in the home folder: masked files and secret stores that
// variables name. If the home folder is writable, it also lists what runs later.
func (s *Sandbox) named(p Policy) []string {
	all := slices.Concat(s.o.Masked, named(secretStores(), s.env, s.home))
	if p.Write >= permission.Home {
		all = append(all, named(protectedHome(), s.env, s.home)...)
	}
	return all
}

// checkNode refuses a Node that could not reach any host.
func (s *Sandbox) checkNode(ctx context.Context, prog *program.Program) error {
	if !program.IsNode(filepath.Base(prog.Path)) {
		return nil
	}
	version, err := s.nodeVersion(ctx, prog.Path)
	if err != nil || honoursProxy(version) {
		return err
	}
	return &UnsupportedError{Feature: "a Node that goes through a proxy", Cause: fmt.Sprintf("%s is Node %s", prog.Path, version), Fix: "use Node 22.21 or newer, or 24"}
}

// nodeVersion returns the version of a Node, from its headers, or by running it in a sandbox without permissions.
func (s *Sandbox) nodeVersion(ctx context.Context, path string) (string, error) {
	if version := program.NodeVersion(path); version != "" {
		return version, nil
	}
	r, err := s.Run(ctx, Policy{}, Command{Args: []string{path, "-p", "process.versions.node"}, Limits: Limits{Time: askTimeout, Output: kib}})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(r.Stdout)), nil
}

// askTimeout bounds how long a Node may take to print its version.
const askTimeout = 20 * time.Second

// openProxy serves a proxy on loopback, with key as its password.
func (s *Sandbox) openProxy(ctx context.Context, p Policy, key string) (*gate.Gate, int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	g := gate.New(ctx, s.gateOptions(p, key))
	g.ServeProxy(l)
	return g, l.Addr().(*net.TCPAddr).Port, nil
}

// limitScript sets the limits that macOS counts per process, and becomes the command.
const limitScript = `ulimit -c 0; ulimit -t "$1"; ulimit -f "$2"; ulimit -n "$3"; shift 3; exec "$@"`

// start runs the command and waits for it.
func (r *run) start(ctx context.Context, b seatbelt, prog *program.Program, workspace string, env []string) error {
	text, parameters, err := b.profile()
	if err != nil {
		return err
	}
	args := []string{"-p", text}
	for _, v := range parameters {
		args = append(args, "-D", v)
	}
	l := r.c.Limits
	args = append(args, "/bin/sh", "-c", limitScript, "sh", strconv.Itoa(int((l.CPU+time.Second-1)/time.Second)), strconv.FormatInt(l.FileSize/512, 10), strconv.Itoa(l.Files), prog.Path)
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	if r.gate != nil {
		meter(r.gate, l.Traffic, kill)
	}
	st, err := newStreams(&r.c, kill)
	if err != nil {
		return &SetupError{Phase: "start", Cause: err.Error()}
	}
	defer st.close()
	cmd := exec.CommandContext(ctx, seatbeltProgram, append(args, r.c.Args[1:]...)...)
	cmd.Dir = cmp.Or(workspace, r.private)
	cmd.Env = append([]string{"PATH=" + strings.Join(append(prog.PathDirs, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"), ":"),
		"HOME=" + r.homeInside(), "TMPDIR=" + r.private, "LANG=" + cmp.Or(os.Getenv("LANG"), "C.UTF-8"), "TERM=dumb", "SHELL=/bin/sh"}, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = st.stdin, st.stdout, st.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	begun := time.Now()
	timer := time.AfterFunc(l.Time, func() { kill(&LimitError{Kind: limitTime, Limit: int64(l.Time)}) })
	defer timer.Stop()
	err = cmd.Start()
	st.closeTheirs()
	if err != nil {
		return &SetupError{Phase: phaseCommand, Cause: err.Error()}
	}
	st.begin()
	waitErr := cmd.Wait()
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // anything left in its process group
	st.wait(r.result)
	r.result.Elapsed = time.Since(begun)
	err = r.judge(ctx, cmd, waitErr)
	r.result.Missed = st.missed(r.p, r.result)
	return err
}

// homeInside returns the home folder if the policy lets it be read, otherwise the private one.
func (r *run) homeInside() string {
	if r.p.EffectiveRead() >= permission.Home {
		return r.s.home
	}
	return r.private
}

// judge turns what happened into the result or an error.
func (r *run) judge(ctx context.Context, cmd *exec.Cmd, waitErr error) error {
	if limit := (*LimitError)(nil); errors.As(context.Cause(ctx), &limit) {
		r.result.Limit, r.result.Code = limit, 137
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if cmd.ProcessState == nil {
		return &SetupError{Phase: "start", Cause: fmt.Sprint(waitErr)}
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	r.result.Code = status.ExitStatus()
	if status.Signaled() {
		r.result.Signal = int(status.Signal())
		r.result.Code = 128 + r.result.Signal
	}
	return nil
}

// report is Check on macOS.
func (s *Sandbox) report(ctx context.Context) Report {
	r, err := s.Run(ctx, Policy{}, Command{Args: []string{"/usr/bin/true"}})
	works := err == nil && r.Code == 0
	report := Report{Enforced: works, Layers: []Layer{
		{"Seatbelt", works, "files, sockets and other processes, by " + seatbeltProgram},
		{"process limit", false, "macOS counts no processes or memory of a group; time, output, files and processor time are limited"},
		{"whole tree", false, "a process that makes two sessions of its own can outlive its command"},
	}, Summary: "Every policy can be enforced on this machine, but for the limits above."}
	if !works {
		report.Summary = fmt.Sprintf("No policy can be enforced on this machine: %v", err)
	}
	return report
}
