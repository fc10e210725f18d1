package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/reach"
	"github.com/pollux-companion/pollux/internal/companion"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Run makes pollux run.
func Run(con *console.Console) *cobra.Command {
	var f serveFlags
	var review string
	cmd := &cobra.Command{
		Use:   "run [-- COMMAND ARGS…]",
		Short: "Run gemini, qwen, claude, copilot or another command, with a companion around it",
		Long: `Starts a companion for the current folder, runs a command in this terminal with
the variables by which an agent finds exactly this companion, and stops with it.
The terminal and the exit code are the command's own, and signals reach it.

With --review you review proposals in this terminal instead of in the browser.
Inside tmux the reviewer has a pane beside the command. Elsewhere it takes the
command's screen when a proposal comes, and gives it back when none is left.
There q puts the waiting proposals off, and Ctrl-] calls the reviewer at any time.`,
		Example: `  pollux run                              runs gemini
  pollux run -- gemini --model gemini-3   with arguments
  pollux run -- claude                    runs Claude Code; qwen runs Qwen Code
  pollux run --no-open -- bash            a shell in which every agent is connected
  pollux run --review                     proposals come up in this terminal`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := optionsOf(con, &f, nil)
			if err != nil {
				return err
			}
			if review, err = reviewMode(con, review); err != nil {
				return err
			}
			f.noOpen = f.noOpen || review != reviewNot
			return runAgent(cmd.Context(), con, o, &f, args, review)
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after the command belong to it
	f.add(cmd)
	cmd.Flags().StringVar(&review, "review", reviewNot, "review proposals in this terminal; the `MODE` is auto, split (tmux) or screen")
	cmd.Flags().Lookup("review").NoOptDefVal = reviewAuto
	return cmd
}

// runAgent starts a companion, then the command, and waits for the command.
func runAgent(ctx context.Context, con *console.Console, o companion.Options, f *serveFlags, args []string, review string) error {
	if len(args) == 0 {
		args = []string{"gemini"}
	}
	path, err := lookCommand(args[0])
	if err != nil {
		return err // before anything has started
	}
	sigs := console.CatchSignals()
	defer sigs.Stop()
	o.Soon = agentOf(args[0])
	c, err := start(ctx, con, o)
	if err != nil {
		return err
	}
	defer func() { _ = c.Stop(ctx) }()
	child := exec.CommandContext(ctx, path, args[1:]...)
	child.Args[0] = args[0]
	child.Stdin, child.Stdout, child.Stderr = con.In, con.Out, con.Err
	vars, err := reach.Variables(c.Connection(), agentOf(args[0]))
	if err != nil {
		return err
	}
	child.Env = os.Environ()
	for _, v := range vars {
		child.Env = append(child.Env, v.Name+"="+v.Value) // the last one counts
	}
	clean, opened := openPage(ctx, con, c, f)
	defer clean()
	if !opened && review == reviewNot && console.Terminal(con.Err) != nil { // the command has the terminal from here on
		fmt.Fprintln(con.Err, "pollux: to see proposals, run in another terminal: pollux review (or pollux page, for the browser)")
	}
	stop, err := startChild(ctx, con, c, child, review)
	if err != nil {
		return err
	}
	defer stop()
	return await(con, c, child, sigs)
}

// startChild starts run's command, with the reviewer beside it or behind it. Call stop after the command has ended.
func startChild(ctx context.Context, con *console.Console, c *companion.Companion, child *exec.Cmd, review string) (stop func(), err error) {
	if review == reviewScreen {
		s, err := startShared(ctx, con, c, child)
		if err != nil {
			return nil, err
		}
		return s.close, nil
	}
	stop = func() {}
	if review == reviewSplit {
		if stop, err = splitReview(ctx, con, c.Info().Roots[0]); err != nil {
			return nil, err
		}
	}
	if err := child.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("%q cannot be started: %w", child.Args[0], safefile.Cause(err))
	}
	return stop, nil
}

// await passes signals to the command until it ends. If the companion fails meanwhile, await reports that but lets
// the command continue, because it may hold unsaved work.
func await(con *console.Console, c *companion.Companion, child *exec.Cmd, sigs *console.Signals) error {
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	failed := c.Failed()
	for {
		select {
		case sig := <-sigs.End:
			passSignal(child.Process, sig)
		case err := <-failed:
			fmt.Fprintf(con.Err, "pollux: the companion has stopped working: %v\n", err)
			failed = nil
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return fmt.Errorf("waiting for %q: %w", child.Args[0], err)
			}
			if code := exitCodeOf(child.ProcessState); code != 0 {
				return console.Exit(code)
			}
			return nil
		}
	}
}

// lookCommand finds a command as a shell would.
func lookCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	hint := "name one that is installed: pollux run -- COMMAND"
	if a, ok := agent.Find(agentOf(name)); ok && a.Install != "" && name == a.Command {
		hint = "install it (" + a.Install + "), or name another: pollux run -- COMMAND"
	}
	if strings.ContainsRune(name, os.PathSeparator) {
		return "", fmt.Errorf("%q cannot be run (%w); %s", name, safefile.Cause(errors.Unwrap(err)), hint)
	}
	return "", fmt.Errorf("no such command: %q; %s", name, hint)
}

// agentOf returns the agent whose program a command is; "" for any other program, which may start any agent.
func agentOf(command string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(command), ".exe"), ".cmd")
	for _, a := range agent.All() {
		if a.Command == base {
			return a.Name
		}
	}
	return ""
}
