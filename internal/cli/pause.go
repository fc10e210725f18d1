package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	folder, err := here(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	clients, silent := control.ListAll(ctx, a.dirs.Run)
	var errs []error
	told := 0
	for _, c := range clients {
		defer c.Close()
		if !slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, folder) }) {
			continue
		}
		if err := c.Pause(ctx, paused); err != nil {
			errs = append(errs, fmt.Errorf("%s %d: %w", c.Status.Editor, c.Status.PID, err))
			continue
		}
		told++
		if paused {
			fmt.Fprintf(a.stdout, "%s %d tells agents nothing of what you look at; pollux resume ends that\n", c.Status.Editor, c.Status.PID)
		} else {
			fmt.Fprintf(a.stdout, "%s %d tells agents what you look at\n", c.Status.Editor, c.Status.PID)
		}
	}
	for _, pid := range silent {
		errs = append(errs, fmt.Errorf("the companion %d does not answer, and may serve this folder", pid))
	}
	if told == 0 && len(errs) == 0 {
		_, err := control.Find(ctx, a.dirs.Run, folder) // which says what runs
		return err
	}
	return errors.Join(errs...)
}
