package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
)

// Pause makes pollux pause.
func Pause(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "pause [DIR]",
		Short: "Stop telling agents what you look at",
		Long: `Stops telling agents what you look at in the current folder (or in DIR). They hear
of no open file, cursor, selection or problem until pollux resume, also after a
restart. You still review proposals, and can still send mentions to an agent.
Editor, page, reviewer and status say that sharing is paused.

Agents drop at once what they would have told with the next prompt. Whatever a
model was told before stays in its conversation.`,
		Example: `  pollux pause                 before you open what is nobody's business
  pollux resume`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return share(cmd.Context(), con, console.DirOf(args), true)
		},
	}
}

// Resume makes pollux resume.
func Resume(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [DIR]",
		Short: "Tell agents again what you look at",
		Long: `Ends pollux pause for the current folder (or DIR), which must be one that the editor
serves, not a folder below it. An agent cannot do that: run it in a terminal of your
own.`,
		Example: `  pollux resume`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return share(cmd.Context(), con, console.DirOf(args), false)
		},
	}
}

// share pauses or resumes every companion of the folder.
func share(ctx context.Context, con *console.Console, dir string, paused bool) error {
	folder, err := console.Here(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	says := "%s %d tells agents what you look at in %s\n"
	if paused {
		says = "%s %d tells agents nothing of what you look at in %s; pollux resume ends that\n"
	}
	told, err := everyCompanion(ctx, con, folder, func(c *control.Client) error {
		if err := decides(c, folder, "pollux resume"); err != nil && !paused {
			return err
		}
		if err := c.Pause(ctx, paused); err != nil {
			return fmt.Errorf("%s %d: %w", c.Status.Editor, c.Status.PID, err)
		}
		fmt.Fprintf(con.Out, says, c.Status.Editor, c.Status.PID, folders(c))
		return nil
	})
	if told == 0 && err == nil {
		_, err = control.Find(ctx, con.Dirs.Run, folder) // its error says what is running
	}
	return err
}

// Stop makes pollux stop.
func Stop(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "stop [DIR]",
		Short: "End pollux serve and the keepers of a folder",
		Long: `Ends pollux serve for the current folder (or DIR), and the keepers that hold the
connections of CLIs whose editor was closed. Open proposals are rejected, and the
CLIs go on in their terminals alone. The companion of a running editor is left
alone.`,
		Example: `  pollux stop            in the folder of the project
  pollux stop ~/app`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return endServing(cmd.Context(), con, console.DirOf(args))
		},
	}
}

// keeperWithin is how long stop looks for a keeper that is starting, after its editor's end.
const keeperWithin = 1500 * time.Millisecond

// endServing ends the companions of a folder that have no editor, and names every one that continues.
func endServing(ctx context.Context, con *console.Console, dir string) error {
	folder, err := console.Here(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	for limit := time.Now().Add(keeperWithin); ; time.Sleep(50 * time.Millisecond) {
		stopped, err := everyCompanion(ctx, con, folder, func(c *control.Client) error {
			if err := c.Stop(ctx); err != nil {
				return fmt.Errorf("process %d: %w", c.Status.PID, err)
			}
			fmt.Fprintf(con.Out, "Process %d ends.\n", c.Status.PID)
			return nil
		})
		if stopped > 0 || err != nil {
			return err
		}
		if time.Now().After(limit) {
			return console.No(fmt.Errorf("no companion or keeper to stop serves %q; pollux status lists those that run", folder))
		}
	}
}

// everyCompanion calls do for each companion that serves a folder. done counts the successes; the error covers the
// failures, and the processes that do not answer and may serve the folder.
func everyCompanion(ctx context.Context, con *console.Console, folder string, do func(*control.Client) error) (done int, err error) {
	var errs []error
	clients, silent := control.ListAll(ctx, con.Dirs.Run)
	for _, c := range clients {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, folder) }) {
			if err := do(c); err != nil {
				errs = append(errs, err)
			} else {
				done++
			}
		}
		c.Close()
	}
	if len(silent) > 0 {
		errs = append(errs, control.SilentError(silent))
	}
	return done, errors.Join(errs...)
}
