package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// addHelp makes the commands that cobra brings behave as the others: what is no command is wrong usage, and not
// the help of something else, which a shell might even read as its completion.
func addHelp(root *cobra.Command) {
	root.SuggestionsMinimumDistance = 2
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				topic, rest, _ := root.Find(args)
				return knownCommand(topic, rest)
			}
		case "completion":
			cmd.Args = knownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())}
	})
}

// worksAlways says that a command needs neither a home nor a configuration: who has broken his must get help
// all the same, and his shell its completion without complaints.
func worksAlways(cmd *cobra.Command) bool {
	if !cmd.HasParent() {
		return true
	}
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		switch cmd.Name() {
		case "help", "completion", "version", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
	}
	return false
}
