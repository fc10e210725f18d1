package console

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// Here returns a folder of the user, by default the current one, absolute and canonical.
func Here(dir string) (string, error) {
	if dir == "" { // probably an unset variable in a script; it does not mean the current folder
		return "", Usage(errors.New(`"" is no folder; name the folder of your project`))
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", Usage(fmt.Errorf("the current folder is gone (%w); go to another one", safefile.Cause(err)))
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", Usage(fmt.Errorf("no folder %q: %w", dir, safefile.Cause(err)))
	}
	return path, nil
}

// DirOf returns the folder in a command's only argument, by default the current one.
func DirOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// KnownCommand refuses an unknown command and suggests the nearest ones.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	} else {
		text += "; see: " + cmd.CommandPath() + " --help"
	}
	return Usage(errors.New(text))
}

// OneArg requires exactly one argument, and names it if it is missing.
func OneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usage(fmt.Errorf("%s takes one %s, not %d; see %s --help", cmd.CommandPath(), name, len(args), cmd.CommandPath()))
		}
		return nil
	}
}
