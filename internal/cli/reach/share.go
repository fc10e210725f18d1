package reach

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
)

// everyAgent names all agents at once.
const everyAgent = "all"

// shareModes are what share accepts.
var shareModes = []string{"always", "ask", "never", "leave"}

// Share makes pollux share.
func Share(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "share [AGENT always|ask|never|leave] [DIR]",
		Short: "Say which agents are told what you look at",
		Long: `Decides whether an agent is told what you look at in the current folder (or in
DIR): open files, cursor, selection and problems. AGENT may be all. Without AGENT
it lists the decisions.

  always  the agent is told
  ask     nothing is told until you have answered once, in the editor or the page
  never   nothing is told
  leave   the agent does not even find this companion. Use it when another
          editor's extension serves the agent: Claude Code, for example, connects
          to neither when it finds two

The decision holds for the folder that the editor serves and the folders below it,
for every editor, until you change it. From a folder below, only never is taken. The
setting share in config.json holds for all other folders.
You still review proposals, and can still send mentions to the agent. An agent's own
shell can only say never.`,
		Example: `  pollux share                    who is told what
  pollux share codex never
  pollux share all ask ~/work`,
		Args: cobra.MaximumNArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return listShares(cmd.Context(), con, console.DirOf(args))
			}
			return setShare(cmd.Context(), con, args[0], args[1], console.DirOf(args[2:]))
		},
	}
}

func listShares(ctx context.Context, con *console.Console, dir string) error {
	if slices.Contains(agent.Names(nil), dir) {
		return console.Usage(fmt.Errorf("%s is told what you look at always, after you were asked, or never: pollux share %s always|ask|never|leave", dir, dir))
	}
	folder, err := console.Here(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	c, err := control.Find(ctx, con.Dirs.Run, folder)
	if err != nil {
		return err
	}
	defer c.Close()
	connected := map[string][]string{}
	if sessions, err := c.Sessions(ctx); err == nil {
		for _, s := range sessions {
			connected[s.Agent] = append(connected[s.Agent], s.Label)
		}
	}
	w := tabwriter.NewWriter(con.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tSHARE\tCONNECTED")
	for _, s := range c.Status.Shares {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Agent, s.Mode, strings.Join(connected[s.Agent], ", "))
	}
	return w.Flush()
}

func setShare(ctx context.Context, con *console.Console, name, mode, dir string) error {
	names := []string{name}
	if name == everyAgent {
		names = agent.Names(nil)
	}
	if !slices.Contains(shareModes, mode) || !slices.Contains(agent.Names(nil), names[0]) {
		return console.Usage(fmt.Errorf("say one of %s or %s, and then one of %s", strings.Join(agent.Names(nil), ", "), everyAgent, strings.Join(shareModes, ", ")))
	}
	folder, err := console.Here(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	told, err := everyCompanion(ctx, con, folder, func(c *control.Client) error {
		if err := decides(c, folder, "pollux share "+name+" "+mode); err != nil && mode != "never" {
			return err
		}
		for _, name := range names {
			if err := c.Share(ctx, name, mode); err != nil {
				return fmt.Errorf("%s %d: %w", c.Status.Editor, c.Status.PID, err)
			}
		}
		fmt.Fprintf(con.Out, "%s %d: %s %s in %s\n", c.Status.Editor, c.Status.PID, name, mode, folders(c))
		return nil
	})
	if told == 0 && err == nil {
		_, err = control.Find(ctx, con.Dirs.Run, folder) // its error says what is running
	}
	return err
}

// decides says why a command for a folder does not tell agents more: the companion serves a folder above it, and would tell them
// more in all of that.
func decides(c *control.Client, folder, command string) error {
	roots := c.Status.Roots
	if slices.ContainsFunc(roots, func(root string) bool { return paths.Within(folder, root) }) {
		return nil
	}
	above := roots[slices.IndexFunc(roots, func(root string) bool { return paths.Within(root, folder) })]
	return console.No(fmt.Errorf("%s %d serves %s, and would tell agents more in all of it, not only in %q; if you want that: %s %q",
		c.Status.Editor, c.Status.PID, folders(c), folder, command, above))
}

// folders names the folders that a companion serves.
func folders(c *control.Client) string {
	all := make([]string, len(c.Status.Roots))
	for i, root := range c.Status.Roots {
		all[i] = strconv.Quote(root)
	}
	return strings.Join(all, ", ")
}
