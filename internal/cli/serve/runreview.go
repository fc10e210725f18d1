package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/reach"
	"github.com/pollux-companion/pollux/internal/companion"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/tui"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/tty"
)

// The ways to show the reviewer during run.
const (
	reviewNot    = ""
	reviewAuto   = "auto"   // split inside tmux, else screen
	reviewSplit  = "split"  // in a tmux pane beside the command
	reviewScreen = "screen" // on the command's screen while something waits
)

// besideFrom is the width in columns from which tmux splits side by side.
const besideFrom = 160

// reviewMode decides what --review means in this terminal, before anything is started.
func reviewMode(con *console.Console, asked string) (string, error) {
	tmux := os.Getenv("TMUX") != ""
	if tmux {
		_, err := paths.Program("tmux")
		tmux = err == nil
	}
	mode := asked
	if mode == reviewAuto {
		if mode = reviewScreen; tmux {
			mode = reviewSplit
		}
	}
	switch mode {
	case reviewNot:
		return mode, nil
	case reviewSplit:
		if !tmux {
			return "", console.Usage(errors.New("--review=split needs tmux around this terminal; start tmux first, or use --review=screen"))
		}
		return mode, nil
	case reviewScreen:
		if in, out := terminal(con); in == nil || out == nil {
			return "", console.Usage(errors.New("--review needs a terminal on standard input and output"))
		}
		return mode, nil
	}
	return "", console.Usage(fmt.Errorf("%q is no way to review; use auto, split or screen", asked))
}

// terminal returns standard input and output if they are a terminal, else nil.
func terminal(con *console.Console) (in, out *os.File) {
	return console.Terminal(con.In), console.Terminal(con.Out)
}

// splitReview opens the reviewer in a pane beside this one. The returned function closes it.
func splitReview(ctx context.Context, con *console.Console, folder string) (closePane func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the reviewer cannot be started: %w", err)
	}
	target := os.Getenv("TMUX_PANE")
	width, _ := tmux(ctx, "display-message", "-p", "-t", target, "#{pane_width}")
	direction := "-v"
	if n := 0; len(width) > 0 {
		if _, err := fmt.Sscan(width, &n); err == nil && n >= besideFrom {
			direction = "-h"
		}
	}
	args := []string{"split-window", "-d", direction, "-t", target, "-P", "-F", "#{pane_id}", "-c", folder}
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "NO_COLOR", "VISUAL", "EDITOR", "LANG", "LC_ALL"} {
		if value, ok := os.LookupEnv(name); ok { // the tmux server may have other values
			args = append(args, "-e", name+"="+value)
		}
	}
	pane, err := tmux(ctx, append(args, "--", exe, "review", folder)...)
	if err != nil {
		return nil, fmt.Errorf("tmux does not split this window: %w; use --review=screen", err)
	}
	return func() { _, _ = tmux(context.WithoutCancel(ctx), "kill-pane", "-t", pane) }, nil
}

// tmux sends one command to the tmux server of this terminal.
func tmux(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.AskTimeout)
	defer cancel()
	program, err := paths.Program("tmux")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, program, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// A sharedScreen is the reviewer on the screen of run's command. Goroutine: one waits for proposals and takes the
// screen for them; close ends it.
type sharedScreen struct {
	con    *console.Console
	shared *tty.Shared
	folder string
	cancel context.CancelFunc
	done   chan struct{}
	kept   []string // messages for the end, about edits that were not taken; written by watch, read after it has ended
}

// startShared starts the command on a new terminal, with the reviewer behind it.
func startShared(ctx context.Context, con *console.Console, c *companion.Companion, child *exec.Cmd) (*sharedScreen, error) {
	in, out := terminal(con)
	child.Stdin, child.Stdout, child.Stderr = nil, nil, nil // the new terminal
	st, err := tty.Start(child, in, out)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be started: %w", child.Args[0], safefile.Cause(err))
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &sharedScreen{con: con, shared: st, folder: c.Info().Roots[0], cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.watch(ctx, c.Info().PID)
	}()
	return s, nil
}

// close must be called after the command has ended.
func (s *sharedScreen) close() {
	s.cancel()
	<-s.done
	s.shared.Close()
	for _, sentence := range s.kept { // while the command ran, it had the screen
		fmt.Fprintf(s.con.Err, "pollux: %s\n", sentence)
	}
}

// watch takes the screen when a proposal waits that the user has not put off, or when the user asks for it.
func (s *sharedScreen) watch(ctx context.Context, pid int) {
	c := s.join(ctx, pid)
	if c == nil {
		return
	}
	defer c.Close()
	news := make(chan struct{}, 1)
	go s.poll(ctx, c, news)
	seen := map[string]bool{}
	for {
		called := false
		select {
		case <-ctx.Done():
			return
		case <-s.shared.Called():
			called = true
		case <-news:
		}
		diffs, err := c.Diffs(ctx)
		if err != nil || !called && !slices.ContainsFunc(diffs, func(d control.Diff) bool { return !seen[d.ID] }) {
			continue
		}
		o := reviewer(s.con, s.folder)
		o.UntilDone = !called
		o.Join = func(ctx context.Context) (tui.Companion, error) { return s.dial(ctx, pid) }
		o.Kept = func(sentence string) { s.kept = append(s.kept, sentence) }
		if err := s.shared.Lend(func() error { return tui.Run(ctx, o) }); err != nil {
			s.con.Log.Warn("the reviewer", "err", err)
		}
		if diffs, err := c.Diffs(ctx); err == nil { // proposals that are left have been put off
			for _, d := range diffs {
				seen[d.ID] = true
			}
		}
	}
}

// poll signals each change of the queue, until ctx ends.
func (s *sharedScreen) poll(ctx context.Context, c *control.Client, news chan<- struct{}) {
	for seen := uint64(0); ; {
		q, err := c.Watch(ctx, seen)
		if err != nil {
			return
		}
		if q.Version == seen {
			continue
		}
		seen = q.Version
		select {
		case news <- struct{}{}:
		default: // already signalled
		}
	}
}

// join attaches to this process's companion, which then counts as having a reviewer.
func (s *sharedScreen) join(ctx context.Context, pid int) *control.Client {
	for {
		c, err := s.dial(ctx, pid)
		if err == nil {
			if err = c.Attach(ctx); err == nil {
				return c
			}
			c.Close()
		}
		if ctx.Err() != nil {
			return nil
		}
		s.con.Log.Info("the reviewer waits for its companion", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// dial finds this process's companion among the user's.
func (s *sharedScreen) dial(ctx context.Context, pid int) (*control.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.AskTimeout)
	defer cancel()
	var found *control.Client
	for _, c := range control.List(ctx, s.con.Dirs.Run) {
		if c.Status.PID == pid && found == nil {
			found = c
		} else {
			c.Close()
		}
	}
	if found == nil {
		return nil, control.ErrNone
	}
	return found, nil
}
