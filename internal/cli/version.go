package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what the Go tool recorded in the binary.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  pollux version`,
		Args:    cobra.NoArgs,
		RunE:    a.printVersion,
	}
}

func (a *app) printVersion(*cobra.Command, []string) error {
	_, err := fmt.Fprintf(a.stdout, "pollux %s\n", version())
	return err
}
