// Package extensions holds the commands that install, inspect, allow and remove extensions.
package extensions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/source"
)

// Command makes pollux extensions, with more commands from other packages.
func Command(kit *tools.Kit, more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "extensions",
		Aliases: []string{"extension", "ext"},
		Short:   "Install, inspect and remove extensions of Gemini CLI",
		Long: `Manages extensions in Gemini CLI's own folder and format. An extension that
pollux installed can be listed, loaded, updated and removed by the CLI, and the
other way round. pollux also shows what an extension may do before you install
it. An installation that fails or is interrupted leaves nothing half-installed.`,
		Example: `  pollux extensions install owner/repo
  pollux ext list
  pollux ext describe code-analyzer --verify`,
		Args: console.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		installCommand(kit), linkCommand(kit), uninstallCommand(kit), updateCommand(kit),
		listCommand(kit), describeCommand(kit), enableCommand(kit, true), enableCommand(kit, false),
		configCommand(kit), searchCommand(kit), exportCommand(kit),
		consentCommand(kit),
		newCommand(kit), validateCommand(kit), schemaCommand(kit),
	)
	cmd.AddCommand(more...)
	return cmd
}

// cancellable returns a context that Ctrl-C ends, so that unfinished work is cleaned up.
func cancellable(cmd *cobra.Command) (context.Context, func()) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// errUnattended replaces a question that nobody could answer.
var errUnattended = errors.New("this needs an answer, and there is no terminal to ask on; add --yes to agree beforehand, or --dry-run to see what would happen")

// askYesNo asks a yes-or-no question on stderr. Anything but yes means no.
func askYesNo(ctx context.Context, kit *tools.Kit, question string) (bool, error) {
	in := console.Terminal(kit.In)
	if in == nil {
		return false, console.Usage(errUnattended)
	}
	fmt.Fprintf(kit.Err, "%s [y/N]: ", question)
	answer, err := ask.ReadLine(ctx, in)
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(kit.Err)
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// fetchOptions returns the options for fetching sources from this terminal.
func fetchOptions(kit *tools.Kit) *source.Options {
	o := &source.Options{Interactive: console.Terminal(kit.In) != nil, Warn: kit.Note}
	if f := console.Terminal(kit.Err); f != nil {
		o.Progress = f
	}
	return o
}
