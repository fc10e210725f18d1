package reach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	editorstate "github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Open makes pollux open.
func Open(con *console.Console) *cobra.Command {
	var keepFocus bool
	cmd := &cobra.Command{
		Use:   "open FILE[:LINE[:COLUMN]]",
		Short: "Show a place in the connected editor",
		Long: `Shows a file in the editor that is connected to this folder (the page, Neovim, Vim,
Emacs). Write the place as compilers and grep do: line and column, counted from 1,
the column in UTF-16 units as editors count. Of several companions it takes the
one whose folder is nearest to the file, and of these the newest.

The exit code is 3 when no editor can show it. pollux review shows only proposals.`,
		Example: `  pollux open main.go:42
  pollux open src/app.ts:10:5
  pollux open --keep-focus README.md`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return openPlace(cmd.Context(), con, args[0], !keepFocus)
		},
	}
	cmd.Flags().BoolVar(&keepFocus, "keep-focus", false, "do not take the keyboard to the editor")
	return cmd
}

func openPlace(ctx context.Context, con *console.Console, what string, takeFocus bool) error {
	name, at, err := parsePlace(what)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return console.Usage(fmt.Errorf("the current folder is gone (%w); go to another one", safefile.Cause(err)))
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%q cannot be opened: %w", name, safefile.Cause(err))
	case info.IsDir():
		return fmt.Errorf("%q is a folder; name a file in it", name)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fmt.Errorf("%q cannot be opened: %w", name, safefile.Cause(err))
	}
	c, err := findFor(ctx, con, path)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	return c.Open(ctx, control.Location{Path: path, Position: at, TakeFocus: takeFocus})
}

// parsePlace splits FILE, FILE:LINE or FILE:LINE:COLUMN. An existing file with the whole name wins.
func parsePlace(what string) (name string, at *editorstate.Position, err error) {
	if what == "" {
		return "", nil, console.Usage(errors.New(`"" is no file; name the file to open`))
	}
	if _, err := os.Lstat(what); err == nil {
		return what, nil, nil
	}
	name, last, ok := cutNumber(strings.TrimSuffix(what, ":"))
	if !ok {
		return what, nil, nil
	}
	at = &editorstate.Position{Line: last - 1}
	if rest, line, ok := cutNumber(name); ok {
		if _, err := os.Lstat(name); err != nil {
			name, at.Line, at.Character = rest, line-1, last-1
		}
	}
	if at.Line < 0 || at.Character < 0 {
		return "", nil, console.Usage(fmt.Errorf("%q: lines and columns are counted from 1", what))
	}
	return name, at, nil
}

// cutNumber cuts a number after a colon off the end.
func cutNumber(s string) (rest string, n int, ok bool) { return cutLast(s, ':') }
