package cli

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

	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

func (a *app) extensionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "extensions",
		Aliases: []string{"extension", "ext"},
		Short:   "Install, inspect and remove extensions of Gemini CLI",
		Long: `Manages extensions in Gemini CLI's own folder and format: what pollux installs
the CLI lists, loads, updates and removes, and the other way round. Beyond that
pollux shows what an extension may do before it is installed, and nothing that
is interrupted or fails leaves an extension half-installed.`,
		Example: `  pollux extensions install owner/repo
  pollux ext list
  pollux ext describe code-analyzer --verify`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		a.extensionsInstallCommand(), a.extensionsLinkCommand(), a.extensionsUninstallCommand(), a.extensionsUpdateCommand(),
		a.extensionsListCommand(), a.extensionsDescribeCommand(), a.extensionsEnableCommand(true), a.extensionsEnableCommand(false),
		a.extensionsConfigCommand(), a.extensionsSearchCommand(), a.extensionsExportCommand(),
		a.extensionsRunCommand(), a.extensionsConsentCommand(), a.extensionsAuditCommand(),
		a.extensionsPromptCommand(), a.extensionsReadCommand(), a.extensionsCallCommand(), a.extensionsRespondCommand(),
		a.extensionsServeCommand(), a.extensionsBridgeCommand(),
		a.extensionsNewCommand(), a.extensionsValidateCommand(), a.extensionsSchemaCommand(),
	)
	a.keepBridge(cmd, "install", "link", "uninstall", "update", "enable", "disable", "grant", "revoke")
	return cmd
}

// knownCommand refuses what is no command, with the nearest ones.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	} else {
		text += "; see: " + cmd.CommandPath() + " --help"
	}
	return usageError{errors.New(text)}
}

// store opens the user's extensions.
func (a *app) store() (*store.Store, error) {
	return store.Open(&store.Options{Warn: a.note})
}

// note tells the user something that stops nothing.
func (a *app) note(text string) {
	fmt.Fprintf(a.stderr, "pollux: note: %s\n", words.Printable(text))
}

// say prints one line of a result; foreign text in it is made safe for the terminal.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stdout, words.Printable(fmt.Sprintf(format, args...)))
}

// extensionError gives an error of the extension packages its exit code: what
// was typed wrong, what the answer is no to, and what could not be done.
func extensionError(err error) error {
	var unknown *store.NotFoundError
	var invalid *manifest.InvalidError
	switch {
	case errors.Is(err, source.ErrUsage):
		return usageError{err}
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.Is(err, source.ErrRefused), errors.Is(err, store.ErrExists):
		return noError{err}
	}
	return err
}

// cancellable is a context that Ctrl-C ends, so that what was begun is cleaned up.
func cancellable(cmd *cobra.Command) (context.Context, func()) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// terminalIn is the user's keyboard, or nil where nobody answers.
func (a *app) terminalIn() *os.File {
	if f, ok := a.stdin.(*os.File); ok && isTerminal(f) {
		return f
	}
	return nil
}

// errUnattended is told instead of a question that nobody would answer.
var errUnattended = errors.New("this needs an answer, and there is no terminal to ask on; add --yes to agree beforehand, or --dry-run to see what would happen")

// ask puts a yes-or-no question on stderr. Anything but yes is no.
func (a *app) ask(ctx context.Context, question string) (bool, error) {
	in := a.terminalIn()
	if in == nil {
		return false, usageError{errUnattended}
	}
	fmt.Fprintf(a.stderr, "%s [y/N]: ", question)
	answer, err := ask.ReadLine(ctx, in)
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(a.stderr)
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// fetchOptions are how sources are fetched for this terminal.
func (a *app) fetchOptions() *source.Options {
	o := &source.Options{Interactive: a.terminalIn() != nil, Warn: a.note}
	if f, ok := a.stderr.(*os.File); ok && isTerminal(f) {
		o.Progress = f
	}
	return o
}
