package runner

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// The runtimes of a manifest.
const (
	runtimeNode   = "node"
	runtimePython = "python"
	runtimeShell  = "shell"
)

// Program returns the program that runs a runtime's scripts, to be looked up in PATH.
func Program(runtime string) string {
	switch runtime {
	case runtimeNode:
		return "node"
	case runtimePython:
		return "python3"
	}
	return "sh"
}

// merge returns a with its zero fields taken from b.
func merge(a, b sandbox.Limits) sandbox.Limits {
	pick := func(a *int64, b int64) {
		if *a == 0 {
			*a = b
		}
	}
	if a.Time == 0 {
		a.Time = b.Time
	}
	if a.CPU == 0 {
		a.CPU = b.CPU
	}
	if a.Processes == 0 {
		a.Processes = b.Processes
	}
	if a.Files == 0 {
		a.Files = b.Files
	}
	pick(&a.Memory, b.Memory)
	pick(&a.Scratch, b.Scratch)
	pick(&a.FileSize, b.FileSize)
	pick(&a.Disk, b.Disk)
	pick(&a.Traffic, b.Traffic)
	pick(&a.Output, b.Output)
	return a
}

// command returns the command for the sandbox, with the extension's content at dir.
func (p *job) command(dir string) sandbox.Command {
	script := filepath.Join(dir, filepath.FromSlash(p.tool.Executable))
	return sandbox.Command{
		Args:      append([]string{Program(p.tool.Runtime), script}, p.args...),
		Dir:       p.dir,
		Workspace: p.workspace,
		Env:       p.env,
		Limits:    p.limits,
	}
}

// run runs the job's tool in its sandbox.
func (r *Runner) run(ctx context.Context, p *job) (*Result, error) {
	if p.q.Unsafe {
		return r.runUnsafe(ctx, p)
	}
	raw, err := r.sandboxed(ctx, p)
	if err != nil {
		return nil, err
	}
	result := p.result(raw, string(raw.Assurance))
	result.Files = r.fileDenials(p, result)
	return result, nil
}

// sandboxed runs the tool on the files that were read, given as copies in memory. It unpacks a copy on disk instead in
// three cases: the files are too large, a copy would hide the workspace (the author works on the extension there), or
// this machine's sandbox has no files of its own.
func (r *Runner) sandboxed(ctx context.Context, p *job) (*sandbox.Result, error) {
	hides := p.workspace != "" && paths.Within(p.content.dir, p.workspace)
	if len(p.content.large) == 0 && p.content.size <= maxHeld && !hides {
		c := p.command(p.content.dir)
		c.Copies = []sandbox.Copy{{Dir: p.content.dir, Files: p.content.files}}
		result, err := r.o.Sandbox.Run(ctx, p.subject.Permissions, c)
		notRun := errors.Is(err, sandbox.ErrSetup) || errors.Is(err, sandbox.ErrUnsupported)
		if !notRun || errors.Is(err, sandbox.ErrCommand) {
			return result, err
		}
	}
	u, err := p.content.unpack()
	if err != nil {
		return nil, err
	}
	defer u.close()
	c := p.command(u.dir())
	c.ReadOnly = []string{u.dir()}
	return r.o.Sandbox.Run(ctx, p.subject.Permissions, c)
}

// result converts a command's result.
func (p *job) result(raw *sandbox.Result, assurance string) *Result {
	result := &Result{
		Extension: p.extension.Name, Version: p.subject.Version, Tool: p.tool.Name,
		Text: strings.ToValidUTF8(string(raw.Stdout), "\uFFFD"), Stderr: strings.ToValidUTF8(string(raw.Stderr), "\uFFFD"), Stdout: raw.Stdout,
		Code: raw.Code, Signal: raw.Signal, Limit: raw.Limit, Denials: raw.Denials, Missed: raw.Missed, Quarantined: raw.Quarantined,
		Elapsed: raw.Elapsed, Memory: raw.Memory, Assurance: assurance, Workspace: p.workspace,
	}
	if p.tool.Output == "json" {
		result.JSON, result.NotJSON = oneValue(raw.Stdout, raw.Limit != nil)
	}
	return result
}

// entry returns the audit log's entry for a job.
func (p *job) entry(event audit.Event, id string) audit.Entry {
	e := audit.Entry{Event: event, Run: id, By: p.by, Extension: p.q.Extension, Tool: p.q.Tool, Args: p.names, Workspace: p.workspace}
	if p.extension != nil {
		e.Extension = p.extension.Name
	}
	if p.subject.Extension != "" {
		e.Version, e.Content, e.Policy = p.subject.Version, p.subject.Content, policyHash(p.subject.Permissions)
		if p.subject.Linked() {
			e.Content = "link"
		}
	}
	return e
}

// refused records that nothing was run.
func (r *Runner) refused(p *job, q Request, err error) {
	e := p.entry(audit.Refused, "")
	e.Why = reason(err)
	if err := r.o.Audit.Append(e); err != nil {
		r.o.Log.Error("a refusal was not recorded", "extension", q.Extension, "err", err)
	}
}

// reason returns an error for the log, without the advice for the caller.
func reason(err error) string {
	var refused *RefusedError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "it was cancelled"
	case errors.As(err, new(*ArgumentError)):
		return "the arguments do not fit" // a model can invent names; they are not logged
	case errors.As(err, &refused) && refused.Why == BecauseConsent:
		switch {
		case errors.Is(err, consent.ErrDamaged):
			return "consent: the answers that were kept cannot be read"
		case errors.Is(err, consent.ErrNobody):
			return "consent: nobody could be asked"
		case errors.Is(err, errDenied):
			return "consent: refused for good"
		}
		return "consent: not given"
	}
	return err.Error()
}

// note records an answer.
func (r *Runner) note(p *job, why string) {
	e := p.entry(audit.Consent, "")
	e.Args, e.Why = nil, why
	if err := r.o.Audit.Append(e); err != nil {
		r.o.Log.Error("an answer was not recorded", "extension", p.extension.Name, "err", err)
	}
}

// record writes how a run ended, and what it was denied.
func (r *Runner) record(p *job, id string, result *Result, runErr error) error {
	e := p.entry(audit.Ended, id)
	var all error
	switch {
	case result != nil:
		e.Milliseconds, e.Exit, e.Signal, e.Assurance = result.Elapsed.Milliseconds(), &result.Code, result.Signal, result.Assurance
		e.Stdout, e.Stderr = int64(len(result.Stdout)), int64(len(result.Stderr))
		if result.Limit != nil {
			e.Limit = result.Limit.Kind
		}
		for _, d := range result.Denials {
			host := p.entry(audit.Host, id)
			host.Args, host.Target, host.Count, host.Why = nil, d.Host, d.Count, d.Why
			if d.Port != 0 {
				host.Target = net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
			}
			all = errors.Join(all, r.o.Audit.Append(host))
		}
		for _, d := range result.Files {
			file := p.entry(audit.File, id)
			file.Args, file.Target, file.Why = nil, d.Path, d.Access+": "+d.Why
			all = errors.Join(all, r.o.Audit.Append(file))
		}
	case errors.Is(runErr, context.Canceled), errors.Is(runErr, context.DeadlineExceeded):
		e.Why = "it was cancelled"
	default:
		e.Event, e.Why = audit.Refused, runErr.Error()
	}
	return errors.Join(all, r.o.Audit.Append(e))
}
