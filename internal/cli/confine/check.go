package confine

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

func checkCommand(con *console.Console) *cobra.Command {
	var asJSON, profile bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what this machine can enforce, and how to get the rest",
		Long: `Builds an empty sandbox. It says which of the sandbox's layers this machine has,
which policies they can enforce, and how to get the missing layers.
The exit code is 0 when every policy can be enforced, otherwise 1.`,
		Example: `  pollux sandbox check
  pollux sandbox check --json
  pollux sandbox check --apparmor    the profile that Ubuntu needs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if profile {
				_, err := fmt.Fprint(con.Out, sandbox.AppArmorProfile())
				return err
			}
			r := New(con, false, false, nil).Check(cmd.Context())
			if asJSON {
				if err := con.PrintJSON(r); err != nil {
					return err
				}
			} else {
				printReport(con, r)
			}
			if !r.Enforced {
				return console.Exit(console.CodeNo)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&profile, "apparmor", false, "print an AppArmor profile for this binary")
	return cmd
}

func printReport(con *console.Console, r sandbox.Report) {
	for _, l := range r.Layers {
		mark := "yes"
		if !l.Present {
			mark = "no "
		}
		fmt.Fprintf(con.Out, "%s  %-14s %s\n", mark, l.Name, l.Detail)
	}
	fmt.Fprintln(con.Out)
	fmt.Fprintln(con.Out, r.Summary)
	for _, fix := range r.Fixes {
		fmt.Fprintf(con.Out, "  %s\n", fix)
	}
}
