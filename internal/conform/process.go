package conform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/client"
)

// startWait is how long a companion may take to write its discovery file.
const startWait = 30 * time.Second

// A Process is a companion that conform started, from Start to End.
type Process struct {
	cmd   *exec.Cmd
	base  string // the temp folder, with the workspace in it
	stale string // a discovery file as a crash leaves it, written before the start
	said  *recording
	done  chan struct{}
	err   error // the process's error; read after done
	// asked is when the process was asked to end; zero before. held is a CLI that stays connected then.
	asked time.Time
	held  *client.Link
}

// Start runs a companion in its own workspace and temp folder, waits for its discovery file, and returns the target
// to test. Its output goes to output; its standard input stays open until End.
func Start(ctx context.Context, args []string, output io.Writer) (Target, error) {
	base, err := os.MkdirTemp("", "px")
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return Target{}, err
	}
	p := &Process{base: base, said: &recording{to: output}, done: make(chan struct{})}
	root, folder := filepath.Join(base, "app"), discovery.DirIn(base)
	for _, dir := range []string{root, folder} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Target{}, errors.Join(err, os.RemoveAll(base))
		}
	}
	p.stale = filepath.Join(folder, discovery.FileName(4_190_000, 9))
	if err := os.WriteFile(p.stale, []byte(`{"port":9,"workspacePath":"/","authToken":"t","ideInfo":{"name":"x","displayName":"X"}}`), 0o600); err != nil {
		return Target{}, errors.Join(err, os.RemoveAll(base))
	}
	p.cmd = exec.Command(args[0], args[1:]...) //nolint:noctx // End ends it
	if filepath.Base(args[0]) != args[0] {     // a relative path refers to the user's folder, not the workspace
		if p.cmd.Path, err = filepath.Abs(args[0]); err != nil {
			return Target{}, errors.Join(err, os.RemoveAll(base))
		}
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = root, p.said, p.said
	p.cmd.Env = append(os.Environ(), "TMPDIR="+base, "TMP="+base, "TEMP="+base)
	p.cmd.WaitDelay = time.Second
	if _, err := p.cmd.StdinPipe(); err != nil {
		return Target{}, errors.Join(err, os.RemoveAll(base))
	}
	if err := p.cmd.Start(); err != nil {
		return Target{}, errors.Join(fmt.Errorf("the companion does not start: %w", err), os.RemoveAll(base))
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t, err := p.find(ctx, folder, root)
	if err != nil {
		p.End()
		if said := p.said.tail(); said != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w; it has said %q", err, said)
		}
	}
	return t, err
}

// find waits for the discovery file.
func (p *Process) find(ctx context.Context, folder, root string) (Target, error) {
	timer := time.NewTimer(startWait)
	defer timer.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		entries, err := discovery.List(folder)
		if err != nil {
			return Target{}, err
		}
		for _, e := range entries {
			if e.Path != p.stale && e.File.Port != 0 {
				return Target{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(e.File.Port)), Token: e.File.Token, Dir: root, File: e.Path, Command: p}, nil
			}
		}
		select {
		case <-tick.C:
		case <-p.done:
			why := "by itself"
			if p.err != nil {
				why = p.err.Error()
			}
			return Target{}, fmt.Errorf("the companion has ended without a discovery file (%s)", why)
		case <-timer.C:
			return Target{}, fmt.Errorf("the companion has written no discovery file in %s within %v; it must use TMPDIR", folder, startWait)
		case <-ctx.Done():
			return Target{}, ctx.Err()
		}
	}
}

// End ends the companion, by force if necessary, and removes its folders.
func (p *Process) End() {
	if p.held != nil {
		defer p.held.Close()
	}
	_ = interrupt(p.cmd.Process)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	_ = os.RemoveAll(p.base)
}

func lifeProbes() []probe {
	return []probe{
		{"D-6/files of the dead", "a file that a crash left is removed by the next start", (*run).swept},
		{"L-1/open diffs are rejected", "an undecided diff wedges the CLI: the end rejects it first", (*run).stopped},
		{"L-1/the end", "it ends when it is asked to, within a second, though a CLI holds its stream", (*run).ended},
		{"D-5/file removed", "the discovery file goes with the companion", (*run).removed},
	}
}

func (r *run) started() error {
	if r.t.Command == nil {
		return skip("only of a companion that conform starts itself: conform -- COMMAND")
	}
	return nil
}

func (r *run) swept() error {
	if err := r.started(); err != nil {
		return err
	}
	if _, err := os.Stat(r.t.Command.stale); err == nil {
		return fmt.Errorf("%s is still there", filepath.Base(r.t.Command.stale))
	}
	return nil
}

// askToEnd asks the companion to end, once, while a CLI holds its stream.
func (r *run) askToEnd() (heard chan event, err error) {
	p := r.t.Command
	if !p.asked.IsZero() {
		return nil, nil
	}
	if p.held, heard, err = r.link(); err != nil {
		return nil, err
	}
	if _, err := r.next(heard, wire.NotifyContext); err != nil { // the stream is open
		return nil, err
	}
	opened := r.openDiff(p.held, filepath.Join(r.dir, "open at the end"), "x")
	p.asked = time.Now()
	return heard, errors.Join(opened, interrupt(p.cmd.Process))
}

func (r *run) stopped() error {
	if err := r.started(); err != nil {
		return err
	}
	heard, err := r.askToEnd()
	if err == nil && heard != nil {
		_, err = r.next(heard, wire.NotifyRejected)
	}
	return err
}

// endWithin is Target.End's default.
const endWithin = 3 * time.Second

func (r *run) ended() error {
	if err := r.started(); err != nil {
		return err
	}
	p := r.t.Command
	var refused *refusedError
	if _, err := r.askToEnd(); err != nil && !errors.As(err, &refused) {
		return err
	}
	timer := time.NewTimer(time.Until(p.asked.Add(r.t.End)))
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("it still runs after %v, with a CLI that holds its stream", r.t.End)
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

func (r *run) removed() error {
	if err := r.started(); err != nil {
		return err
	}
	var refused *refusedError
	if _, err := r.askToEnd(); err != nil && !errors.As(err, &refused) {
		return err
	}
	for end := r.t.Command.asked.Add(r.t.End); ; {
		if _, err := os.Stat(r.t.File); err != nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("it is still there %v after the companion was asked to end", r.t.End)
		}
		if err := r.pause(20 * time.Millisecond); err != nil {
			return err
		}
	}
}
