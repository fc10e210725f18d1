package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/doctor"
)

// Status makes pollux status.
func Status(con *console.Console) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the companions of this machine, and their health",
		Long: `Lists every companion of yours on this machine, pollux's and others: editor,
process, port, workspace, age and health. For pollux's own it also counts the
connected CLIs and the open diffs.

A discovery file without a living companion is marked dead. The next companion
removes it, and so does pollux doctor --fix. A star marks the companion that a
Gemini CLI in this shell and folder would take; pollux doctor says why.

Below the list are the connected CLIs, the agents that ask by pollux mcp --ide,
and the other agents that would connect.

The exit code is 1 when no companion is alive.`,
		Example: `  pollux status
  pollux status --all     also those in temp folders that this shell's CLI does not see
  pollux status --json    for scripts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return survey(cmd.Context(), con, all, asJSON) },
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "look into other temp folders as well")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list instead")
	return cmd
}

func survey(ctx context.Context, con *console.Console, all, asJSON bool) error {
	dir, err := console.Here(".")
	if err != nil {
		return err
	}
	found := doctor.Survey(ctx, con.Dirs.Run, doctor.Folders(all), dir)
	doctor.Mark(found, &client.World{Dir: dir})
	living := 0
	for _, c := range found {
		if c.Health == doctor.Healthy || c.Health == doctor.Unlisted {
			living++
		}
	}
	if asJSON {
		if found == nil {
			found = []doctor.Companion{}
		}
		err = con.PrintJSON(found)
	} else {
		printStatus(con, found)
	}
	if err == nil && living == 0 {
		err = console.Exit(console.CodeNo)
	}
	return err
}

func printStatus(con *console.Console, found []doctor.Companion) {
	if len(found) == 0 {
		fmt.Fprintln(con.Out, "No companion runs. Start one with: pollux serve")
		return
	}
	w := tabwriter.NewWriter(con.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "  EDITOR\tPID\tPORT\tCLIS\tDIFFS\tAGE\tHEALTH\tWORKSPACE")
	for _, c := range found {
		mark := " "
		if c.Taken {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, console.Folders([]string{cmp.Or(c.Editor, "-")}), c.PID, port(c.Port),
			number(c.Sessions), number(c.Diffs), age(c.Since), string(c.Health), shortFolders(c.Workspace))
	}
	w.Flush()
	for _, c := range found {
		if len(c.CLIs) > 0 {
			fmt.Fprintf(con.Out, "  %d: connected: %s\n", c.PID, console.Folders(c.CLIs))
		}
		if len(c.Askers) > 0 {
			fmt.Fprintf(con.Out, "  %d: asks by pollux mcp: %s\n", c.PID, console.Folders(c.Askers))
		}
		if len(c.TakenBy) > 0 {
			fmt.Fprintf(con.Out, "  %d: taken as well, from here, by: %s\n", c.PID, console.Folders(c.TakenBy))
		}
		if c.Note != "" {
			fmt.Fprintf(con.Out, "  %d: %s\n", c.PID, console.Folders([]string{c.Note}))
		}
		for _, t := range c.Troubles {
			fmt.Fprintf(con.Out, "  %d: %s; %s (%s)\n", c.PID, console.Folders([]string{t.What}), t.Why, console.Folders([]string{t.Do}))
		}
	}
}

// number formats a count that may be unknown.
func number(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

// port formats a port; a relay has none.
func port(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// age returns the time since a moment, in its largest unit.
func age(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	switch d := time.Since(since); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// shortFolders lists folders with ~ for the home folder.
func shortFolders(paths []string) string {
	home, err := os.UserHomeDir()
	short := make([]string, len(paths))
	for i, p := range paths {
		if rest, ok := strings.CutPrefix(p, home+string(os.PathSeparator)); err == nil && ok {
			p = "~" + string(os.PathSeparator) + rest
		}
		short[i] = p
	}
	if len(short) == 0 {
		return "-"
	}
	return console.Folders(short)
}
