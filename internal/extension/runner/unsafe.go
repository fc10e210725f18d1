package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/sandbox"
)

// unsandboxed is the Assurance of a run without a sandbox.
const unsandboxed = "none"

// The sandbox's limits that also hold for a run without one.
const (
	unsafeTime   = time.Minute
	unsafeOutput = 10 << 20
)

// runUnsafe runs the job's tool with all of the user's rights, as they explicitly demanded (--unsafe-no-sandbox). It
// still runs exactly the hashed content. Time and output are limited; memory and processes are not.
func (r *Runner) runUnsafe(ctx context.Context, p *job) (*Result, error) {
	u, err := p.content.unpack()
	if err != nil {
		return nil, err
	}
	defer u.close()
	c := p.command(u.dir())
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return nil, fmt.Errorf("%w: no program %q is found", sandbox.ErrCommand, c.Args[0])
	}
	limits := merge(p.limits, sandbox.Limits{Time: unsafeTime, Output: unsafeOutput})
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	defer time.AfterFunc(limits.Time, func() { kill(&sandbox.LimitError{Kind: "time", Limit: int64(limits.Time)}) }).Stop()
	out := &meter{kill: kill}
	out.left.Store(limits.Output)
	errs := &meter{kill: kill, shared: &out.left}
	out.shared, out.limit, errs.limit = &out.left, limits.Output, limits.Output
	cmd := exec.CommandContext(ctx, path, c.Args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, out, errs
	cmd.Env = append(plainEnvironment(path), c.Env...)
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	runtime.LockOSThread() // until the program has ended; see ownGroup
	defer runtime.UnlockOSThread()
	begun := time.Now()
	waitErr := cmd.Run()
	endGroup(cmd)
	raw := &sandbox.Result{Stdout: out.buf.Bytes(), Stderr: errs.buf.Bytes(), Elapsed: time.Since(begun)}
	if limit := (*sandbox.LimitError)(nil); errors.As(context.Cause(ctx), &limit) {
		raw.Limit, raw.Code = limit, 137
		return p.result(raw, unsandboxed), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if cmd.ProcessState == nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrCommand, waitErr)
	}
	raw.Code, raw.Signal = ending(cmd.ProcessState)
	return p.result(raw, unsandboxed), nil
}

// plainEnvironment returns a minimal environment, without any token of the user's.
func plainEnvironment(program string) []string {
	env := []string{"PATH=" + filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, name := range []string{"HOME", "TMPDIR", "LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "SystemRoot", "USERPROFILE", "TEMP", "TMP"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// A meter collects output until a byte limit, which it may share with another meter, is used up.
type meter struct {
	buf    bytes.Buffer
	left   atomic.Int64
	shared *atomic.Int64
	limit  int64
	kill   context.CancelCauseFunc
}

func (m *meter) Write(data []byte) (int, error) {
	before := m.shared.Add(int64(-len(data))) + int64(len(data))
	if int64(len(data)) > before {
		m.kill(&sandbox.LimitError{Kind: "output", Limit: m.limit})
		m.buf.Write(data[:max(before, 0)])
		return len(data), nil
	}
	return m.buf.Write(data)
}
