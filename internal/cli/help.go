package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollux-companion/pollux/internal/cli/console"
)

// addHelp makes cobra's own commands behave like the others: an unknown command is wrong usage. It does not print
// another command's help, which a shell might even read as its completion.
func addHelp(root *cobra.Command) {
	root.SuggestionsMinimumDistance = 2
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				topic, rest, _ := root.Find(args)
				return console.KnownCommand(topic, rest)
			}
		case "completion":
			cmd.Args = console.KnownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		says, _, _ := strings.Cut(err.Error(), ": strconv.")
		switch {
		case errors.Is(err, strconv.ErrSyntax):
			err = errors.New(says + ": it is not a number")
		case errors.Is(err, strconv.ErrRange):
			err = errors.New(says + ": no number is that large")
		}
		return console.Usage(fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath()))
	})
	pointToHelp(root)
}

// pointToHelp adds the place of the help to a command's errors about its arguments.
func pointToHelp(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && !strings.Contains(err.Error(), "see: ") && !strings.HasSuffix(err.Error(), "?") {
				err = fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
			}
			return err
		}
	}
	for _, sub := range cmd.Commands() {
		pointToHelp(sub)
	}
}

// completeFiles lets the shell complete arguments and flags whose usage says FILE or DIR.
func completeFiles(cmd *cobra.Command) {
	kind := func(usage string) (complete cobra.CompletionFunc, ok bool) {
		for word, directive := range map[string]cobra.ShellCompDirective{"FILE": cobra.ShellCompDirectiveDefault, "DIR": cobra.ShellCompDirectiveFilterDirs} {
			if slices.Contains(strings.FieldsFunc(usage, func(r rune) bool { return !unicode.IsUpper(r) }), word) {
				return cobra.FixedCompletions(nil, directive), true
			}
		}
		return nil, false
	}
	_, args, _ := strings.Cut(cmd.Use, " ")
	if complete, ok := kind(args); ok && cmd.ValidArgsFunction == nil && !strings.Contains(args, "--") {
		cmd.ValidArgsFunction = complete
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		if complete, ok := kind(name); ok {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
	})
	for _, sub := range cmd.Commands() {
		completeFiles(sub)
	}
}

// worksAlways reports whether a command needs neither a home nor a configuration. With a broken configuration, help
// must still work, and completion must not complain.
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
