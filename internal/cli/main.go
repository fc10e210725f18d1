// Package cli is the command line: the table of commands, global flags, help and completion, and the settings and log
// that each command starts with. The commands are in the packages below it, grouped by use.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/confine"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/diagnose"
	"github.com/pollux-companion/pollux/internal/cli/extensions"
	"github.com/pollux-companion/pollux/internal/cli/kak"
	"github.com/pollux-companion/pollux/internal/cli/model"
	"github.com/pollux-companion/pollux/internal/cli/reach"
	"github.com/pollux-companion/pollux/internal/cli/serve"
	"github.com/pollux-companion/pollux/internal/cli/setup"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/settings"
)

// Main runs the command line in args (without the program's name) and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{Console: &console.Console{In: stdin, Out: stdout, Err: stderr}}
	root := a.root(args)
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addHelp(root) // after SetOut, because the completion command copies it when it is created
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeFiles(root)
	}
	err := root.ExecuteContext(context.Background())
	if a.closeLog != nil {
		a.closeLog()
	}
	switch {
	case err == nil:
	case !a.started:
		err = console.Usage(err)
	case errors.Is(err, control.ErrNone), errors.As(err, new(*store.NotFoundError)):
		err = console.No(err)
	}
	return a.Report(err)
}

// An app is one run of the command line.
type app struct {
	*console.Console
	logLevel string // --log-level
	started  bool   // the arguments were valid
	closeLog func()
}

func (a *app) root(args []string) *cobra.Command {
	// cobra's own --version uses a template, which makes the linker keep every exported method of every type: a fifth
	// of the program.
	asked := false
	root := &cobra.Command{
		Use:   "pollux",
		Short: "Make any editor an IDE for terminal agents",
		Long: `pollux makes any editor a first-class IDE for terminal agents: Gemini CLI, Qwen
Code, Claude Code and GitHub Copilot CLI. The agent knows which files you have
open, where your cursor is and what you have selected. Its changes appear as
diffs that you can edit, accept or reject.`,
		Example: `  pollux serve              a companion for this folder, with its editor page
  pollux run                the same around gemini, in this terminal
  pollux help COMMAND       more about a command, with examples`,
		Args:              console.KnownCommand,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if asked {
				return a.printVersion(cmd, args)
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVar(&asked, "version", false, "print the version")
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", "", "the lowest `LEVEL` that is logged: debug, info, warn or error")
	root.PersistentFlags().BoolVarP(&a.Verbose, "verbose", "v", false, "show the log on standard error as well")
	root.AddCommand(a.commands(args)...)
	return root
}

// commands returns all commands, or only the one that args name, which makes a companion's start a twentieth faster.
func (a *app) commands(args []string) []*cobra.Command {
	con, kit := a.Console, &tools.Kit{Console: a.Console}
	all := map[string]func() *cobra.Command{
		"version":    a.versionCommand,
		"extensions": func() *cobra.Command { return allExtensions(kit) },
		"mcp":        func() *cobra.Command { return model.MCP(kit, reach.EditorTools(con)) },
		"setup":      func() *cobra.Command { return setup.Setup(con, model.SetupBridge{Kit: kit}) },
		"doctor":     func() *cobra.Command { return diagnose.Doctor(con, model.BridgeFindings) },
		"kakoune":    func() *cobra.Command { return kak.Command(con, serve.Over) },
	}
	for name, command := range map[string]func(*console.Console) *cobra.Command{
		"serve": serve.Serve, "run": serve.Run, "lsp": serve.LSP, "keep": serve.Keep, "review": serve.Review,
		"env": reach.Env, "page": reach.Page, "open": reach.Open, "diff": reach.Diff, "relay": reach.Relay,
		"mention": reach.Mention, "share": reach.Share, "pause": reach.Pause, "resume": reach.Resume, "stop": reach.Stop,
		"status": diagnose.Status, "conform": diagnose.Conform, "context": diagnose.Context,
		"install": setup.Install, "uninstall": setup.Uninstall, "detect": setup.Detect,
		"sandbox": confine.Command,
	} {
		all[name] = func() *cobra.Command { return command(con) }
	}
	if len(args) > 0 && all[args[0]] != nil {
		return []*cobra.Command{all[args[0]]()}
	}
	var list []*cobra.Command
	for _, command := range all {
		list = append(list, command())
	}
	return list
}

// allExtensions assembles pollux extensions from its parts.
func allExtensions(kit *tools.Kit) *cobra.Command {
	cmd := extensions.Command(kit, append(tools.Commands(kit), model.Commands(kit)...)...)
	model.KeepBridge(kit, cmd, "install", "link", "uninstall", "update", "enable", "disable", "grant", "revoke")
	return cmd
}

// prepare finds the folders, reads the settings and opens the log, before any command.
func (a *app) prepare(cmd *cobra.Command) (err error) {
	a.started = true
	if worksAlways(cmd) {
		return nil
	}
	if a.Dirs, err = settings.Folders(); err != nil {
		return err
	}
	set, warnings, err := settings.Load(a.Dirs.ConfigFile())
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(a.Err, "pollux: %v\n", w)
	}
	a.Settings = set
	word := set.LogLevel
	if a.logLevel != "" {
		word = a.logLevel
	}
	level, err := settings.Level(word)
	if err != nil {
		return console.Usage(err)
	}
	var also io.Writer
	if a.Verbose {
		also = a.Err
	}
	log, closer := settings.OpenLog(a.Dirs, level, also)
	a.Log, a.closeLog = log, func() { _ = closer.Close() }
	return nil
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
	_, err := fmt.Fprintf(a.Out, "pollux %s\n", console.Version())
	return err
}
