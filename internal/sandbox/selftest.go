package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

// A Trial is the result of trying one escape.
type Trial struct {
	Kind string `json:"kind"` // files, processes, kernel, network, limits, programs or later
	Name string `json:"name"`
	// Outside says whether it works without a sandbox: "works", "does not", or "" if that was not tried.
	Outside string `json:"outside,omitempty"`
	// Held says that the sandbox kept it in.
	Held bool `json:"held"`
	// What says what happened if it was not Held.
	What string `json:"what,omitempty"`
	// Policies is how many policies it was tried under.
	Policies int `json:"policies"`
}

// trialWithin bounds one trial.
const trialWithin = time.Minute

// SelfTest tries every known escape on this machine. Its targets are files, services and processes of its own in dir,
// a new folder with a short path. program is this program's file; its main must call escapes.Probe. Several trials
// run at once; tell gets each in list order, from this goroutine. An error means that the sandbox could not be set
// up, so nothing is known.
func SelfTest(ctx context.Context, dir, program string, tell func(Trial)) error {
	prey, err := escapes.NewPrey(paths.Real(dir))
	if err != nil {
		return fmt.Errorf("%w: the targets of the test could not be made in %q: %w; see what is missing: pollux sandbox check", ErrUnsupported, dir, err)
	}
	defer prey.Close()
	s := New(&Options{Home: prey.Home, Records: filepath.Join(dir, "runs")})
	all := escapes.All()
	trials := make([]Trial, len(all))
	ended := make([]chan error, len(all))
	for i := range ended {
		ended[i] = make(chan error, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait() // no trial may outlive the prey
	defer cancel()
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) + 1 { // one more, because some only wait
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				var err error
				trials[i], err = s.try(ctx, prey, program, filepath.Join(dir, fmt.Sprint(i)), &all[i])
				ended[i] <- err
			}
		})
	}
	for i := range all { // in list order
		select {
		case err := <-ended[i]:
			if err != nil {
				return err
			}
			tell(trials[i])
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// try tries one escape within its time. Plays use the folder dir.
func (s *Sandbox) try(ctx context.Context, prey *escapes.Prey, program, dir string, e *escapes.Escape) (trial Trial, err error) {
	trial = Trial{Kind: string(e.Kind), Name: e.Name, Policies: 1}
	within, cancel := context.WithTimeout(ctx, trialWithin)
	defer cancel()
	if e.Play != nil {
		trial.What, err = s.playEscape(within, dir, e)
	} else {
		trial.What, err = s.probe(within, prey, program, e, &trial)
	}
	if within.Err() != nil && ctx.Err() == nil {
		trial.What, err = fmt.Sprintf("it did not end within %v, so nothing is known of it", trialWithin), nil
	}
	trial.Held = trial.What == ""
	return trial, err
}

// probe runs a probe without a sandbox, if that is harmless, and under each policy. It returns what the probe got, or
// "" if it was held.
func (s *Sandbox) probe(ctx context.Context, prey *escapes.Prey, program string, e *escapes.Escape, trial *Trial) (what string, err error) {
	if prey.Works(e) {
		code, err := prey.Outside(ctx, e)
		if err != nil {
			return "", err
		}
		trial.Outside = "works"
		if code != escapes.Out {
			trial.Outside = "does not"
		}
	}
	policies := e.Policies()
	trial.Policies = len(policies)
	for _, p := range policies {
		r, err := s.Run(ctx, p, Command{Args: e.Command(program), Workspace: prey.Workspace, ReadOnly: []string{prey.ReadOnly, program}, Env: prey.Env})
		if err != nil {
			return "", err
		}
		if r.Code != escapes.Held {
			return fmt.Sprintf("under %s it ended with %d: %s", rights(p), r.Code, strings.TrimSpace(string(r.Stdout)+string(r.Stderr))), nil
		}
	}
	if _, err := os.Lstat(filepath.Join(prey.Home, "made-by-probe")); err == nil {
		return "it wrote to the home folder", nil
	}
	return "", nil
}

// rights describes a policy in a few words.
func rights(p Policy) string { return fmt.Sprintf("read %s, write %s", p.Read, p.Write) }

// playEscape plays an escape that takes more than one process, on a prey of its own in dir. It returns what happened,
// or "" if it was held.
func (s *Sandbox) playEscape(ctx context.Context, dir string, e *escapes.Escape) (what string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	prey, err := escapes.NewFiles(paths.Real(dir))
	if err != nil {
		return "", err
	}
	p := e.Play
	c := Command{
		Workspace: prey.Workspace, Env: []string{"WORKSPACE=" + prey.Workspace},
		Limits: Limits{Memory: p.Memory, Output: p.Output, Disk: p.Disk, Time: time.Duration(p.Seconds) * time.Second},
	}
	for _, arg := range p.Args {
		c.Args = append(c.Args, strings.ReplaceAll(arg, "$WORKSPACE/", prey.Workspace+"/"))
	}
	own := New(&Options{Home: prey.Home, Records: s.o.Records})
	r, err := own.Run(ctx, p.Policy, c)
	// Some are not runnable programs. Refusing them is enough, as long as nothing ran outside.
	if err != nil && (p.Limit != "" || !errors.Is(err, ErrPolicy) && !errors.Is(err, ErrCommand)) {
		return "", err
	}
	kind := ""
	if r != nil && r.Limit != nil {
		kind = r.Limit.Kind
	}
	if kind != p.Limit {
		return fmt.Sprintf("the limit that ended it is %q, not %q", kind, p.Limit), nil
	}
	if p.Held != nil {
		if err := p.Held(prey); err != nil {
			return err.Error(), nil
		}
	}
	return "", nil
}
