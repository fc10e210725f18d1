package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/sandbox"
)

func (a *app) sandboxCheckCommand() *cobra.Command {
	var asJSON, profile bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what this machine can enforce, and how to get the rest",
		Long: `Builds a sandbox around nothing, and says which of its layers this machine
gives, which policies it can therefore enforce, and what to do about the rest.
The exit code is 0 when every policy can be enforced, otherwise 1.`,
		Example: `  pollux sandbox check
  pollux sandbox check --json
  pollux sandbox check --apparmor    the profile that Ubuntu needs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if profile {
				_, err := fmt.Fprint(a.stdout, sandbox.AppArmorProfile())
				return err
			}
			r := a.newSandbox(false).Check(cmd.Context())
			if asJSON {
				if err := a.writeJSON(r); err != nil {
					return err
				}
			} else {
				a.printSandboxReport(r)
			}
			if !r.Enforced {
				return exitError(exitNo)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&profile, "apparmor", false, "print an AppArmor profile for this binary")
	return cmd
}

func (a *app) printSandboxReport(r sandbox.Report) {
	for _, l := range r.Layers {
		mark := "yes"
		if !l.Present {
			mark = "no "
		}
		fmt.Fprintf(a.stdout, "%s  %-14s %s\n", mark, l.Name, l.Detail)
	}
	fmt.Fprintln(a.stdout)
	fmt.Fprintln(a.stdout, r.Summary)
	for _, fix := range r.Fixes {
		fmt.Fprintf(a.stdout, "  %s\n", fix)
	}
}
