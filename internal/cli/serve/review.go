package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/reach"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/tui"
)

// Review makes pollux review.
func Review(con *console.Console) *cobra.Command {
	theme := ""
	cmd := &cobra.Command{
		Use:   "review [DIR]",
		Short: "Review proposed changes in this terminal",
		Long: `Shows the proposals of the current folder (or of DIR) as diffs in this terminal.
Accept or reject them, take single hunks, or edit them in $VISUAL or $EDITOR. It
works beside the page or an editor: a proposal that you decide there disappears
here. If neither is open, the reviewer alone shows diffs. If no companion runs, or
it ends, the reviewer waits for one.

Press ? in it for the keys.`,
		Example: `  pollux review                 in a second terminal, or over ssh
  pollux run --review           a companion, the CLI and the reviewer in one terminal
  NO_COLOR=1 pollux review ~/app`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reviewHere(cmd.Context(), con, console.DirOf(args), theme)
		},
	}
	cmd.Flags().StringVar(&theme, "theme", "", "light or dark: the terminal's background, where pollux does not find it out")
	return cmd
}

func reviewHere(ctx context.Context, con *console.Console, dir, theme string) error {
	if theme != "" && theme != "light" && theme != "dark" {
		return console.Usage(fmt.Errorf("--theme is light or dark, not %q", theme))
	}
	folder, err := console.Here(dir)
	if err != nil {
		return err
	}
	if console.Terminal(con.In) == nil || console.Terminal(con.Out) == nil {
		return console.Usage(errors.New("review needs a terminal on standard input and output; to ask from a script, see: pollux diff --help"))
	}
	o := reviewer(con, folder)
	o.Theme = theme
	o.Kept = func(sentence string) { fmt.Fprintf(con.Err, "pollux: %s\n", sentence) }
	return tui.Run(ctx, o)
}

// reviewer returns the options of a reviewer for the companion that serves folder.
func reviewer(con *console.Console, folder string) tui.Options {
	return tui.Options{
		Join: func(ctx context.Context) (tui.Companion, error) {
			ctx, cancel := context.WithTimeout(ctx, reach.AskTimeout)
			defer cancel()
			c, err := control.Find(ctx, con.Dirs.Run, folder)
			if err != nil {
				return nil, err // a nil client in an interface is not nil
			}
			return c, nil
		},
		Folder:  folder,
		Editor:  userEditor(),
		NoColor: os.Getenv("NO_COLOR") != "",
		Env:     os.Environ(),
	}
}

// userEditor returns the user's editor as other terminal programs choose it.
func userEditor() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if editor := os.Getenv(name); editor != "" {
			return editor
		}
	}
	return cmp.Or(map[string]string{"windows": "notepad"}[runtime.GOOS], "vi")
}
