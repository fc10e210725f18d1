package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
)

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause [DIR]",
		Short: "Stop telling agents what you look at",
		Long: `Keeps from every agent what you look at in the current folder (or in DIR): no open
file, cursor, selection or problem is told until pollux resume, also after a
restart. Proposals come and are decided as ever, and what you send to an agent
yourself is sent. Editor, page, reviewer and status say that sharing is paused.

Agents forget at once what they would have told with the next prompt. What a model
was told before stays in its conversation.`,
		Example: `  pollux pause                 before you open what is nobody's business
  pollux resume`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.pause(cmd.Context(), dirOf(args), true) },
	}
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume [DIR]",
		Short: "Tell agents again what you look at",
		Long: `Ends pollux pause for the current folder (or DIR). An agent cannot do that: run it
in a terminal of your own.`,
		Example: `  pollux resume`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.pause(cmd.Context(), dirOf(args), false) },
	}
}

// pause tells every companion of the folder.
func (a *app) pause(ctx context.Context, dir string, paused bool) error {
	says := "%s %d tells agents what you look at\n"
	if paused {
		says = "%s %d tells agents nothing of what you look at; pollux resume ends that\n"
	}
	told, err := a.everyCompanion(ctx, dir, func(ctx context.Context, c *control.Client) error {
		if err := c.Pause(ctx, paused); err != nil {
			return fmt.Errorf("%s %d: %w", c.Status.Editor, c.Status.PID, err)
		}
		fmt.Fprintf(a.stdout, says, c.Status.Editor, c.Status.PID)
		return nil
	})
	if told == 0 && err == nil {
		c, err := a.find(ctx, dir) // which says what runs
		if err == nil {
			c.Close()
		}
		return err
	}
	return err
}

func (a *app) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stop [DIR]",
		Short: "End the keepers, and pollux serve, of a folder",
		Long: `Ends what serves the current folder (or DIR) without an editor: the keepers that
hold the connection of CLIs whose editor was closed, and pollux serve. What is
still open is rejected, and the CLIs go on in their terminals alone. A companion
of an editor that runs is left alone.`,
		Example: `  pollux stop            in the folder of the project
  pollux stop ~/app`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.stop(cmd.Context(), dirOf(args)) },
	}
}

// keeperWithin is how long stop looks for a keeper that is just starting, after its editor's end.
const keeperWithin = 1500 * time.Millisecond

// stop ends the companions of a folder that have no editor, and says which ones go on.
func (a *app) stop(ctx context.Context, dir string) error {
	end := func(ctx context.Context, c *control.Client) error {
		if err := c.Stop(ctx); err != nil {
			return fmt.Errorf("process %d: %w", c.Status.PID, err)
		}
		fmt.Fprintf(a.stdout, "Process %d ends.\n", c.Status.PID)
		return nil
	}
	stopped, err := a.everyCompanion(ctx, dir, end)
	for limit := time.Now().Add(keeperWithin); stopped == 0 && err == nil && time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		stopped, err = a.everyCompanion(ctx, dir, end)
	}
	if stopped == 0 && err == nil {
		folder, err := here(dir)
		if err != nil {
			return err
		}
		return noError{fmt.Errorf("nothing serves %q that could be stopped; pollux status lists what runs", folder)}
	}
	return err
}

// everyCompanion does one thing to each companion that serves a folder. done counts those to which it was done; the error is about
// the others, and about the processes that do not answer and may serve it.
func (a *app) everyCompanion(ctx context.Context, dir string, do func(context.Context, *control.Client) error) (done int, err error) {
	folder, err := here(dir)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	clients, silent := control.ListAll(ctx, a.dirs.Run)
	var errs []error
	for _, c := range clients {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, folder) }) {
			if err := do(ctx, c); err != nil {
				errs = append(errs, err)
			} else {
				done++
			}
		}
		c.Close()
	}
	if len(silent) > 0 { // and may serve this folder
		errs = append(errs, control.SilentError(silent))
	}
	return done, errors.Join(errs...)
}
