package cli

import (
	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
)

// knownCommand refuses what is no command, with the nearest ones.
func knownCommand(cmd *cobra.Command, args []string) error { return console.KnownCommand(cmd, args) }

// noError marks an answer that is no rather than a failure (exit code 1).
type noError struct{ error }

func (e noError) Unwrap() error { return e.error }

// writeJSON prints v for programs.
func (a *app) writeJSON(v any) error { return a.kit.PrintJSON(v) }
