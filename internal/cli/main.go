// Package cli is the command line: each command parses its flags, calls one
// function of a package below, prints, and chooses the exit code of SPEC §11.5.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/confine"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/extensions"
	"github.com/pollux-companion/pollux/internal/cli/model"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/idetools"
	"github.com/pollux-companion/pollux/internal/settings"
	"github.com/pollux-companion/pollux/internal/words"
)

// The exit codes of SPEC §11.5; run passes its command's own through.
const (
	exitDone      = 0
	exitNo        = 1 // the answer is no: nothing is served here
	exitUsage     = 2
	exitFailed    = 3
	exitCancelled = 130
)

// Main runs the command line in args (without the program's name) and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, kit: &tools.Kit{Console: &console.Console{In: stdin, Out: stdout, Err: stderr}}}
	root := a.root(args)
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addHelp(root) // after SetOut, which the command for completion takes over when it is made
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeFiles(root)
	}
	err := root.ExecuteContext(context.Background())
	if a.closeLog != nil {
		a.closeLog()
	}
	return a.report(err)
}

// An app is one run of the command line.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	logLevel string // --log-level
	verbose  bool   // -v

	started  bool // the arguments were understood
	dirs     settings.Dirs
	settings settings.Settings
	log      *slog.Logger
	closeLog func()

	kit *tools.Kit // what the commands in packages of their own share
}

// usageError marks what the user typed wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError is the exit code of a command that run ran; it has been told already.
type exitError = console.Exit

// report prints an error and turns it into an exit code.
func (a *app) report(err error) int {
	switch {
	case err == nil:
	case !a.started || errors.As(err, &usageError{}):
		err = console.Usage(err)
	case errors.Is(err, control.ErrNone), errors.As(err, &noError{}), errors.As(err, new(*store.NotFoundError)):
		err = console.No(err)
	}
	return a.kit.Report(err)
}

func (a *app) root(args []string) *cobra.Command {
	// cobra's own --version takes a template, with which the linker has to keep
	// every exported method of every type: a fifth of the program.
	asked := false
	root := &cobra.Command{
		Use:   "pollux",
		Short: "Make any editor an IDE for Gemini CLI",
		Long: `pollux makes any editor a first-class IDE for Gemini CLI: the CLI knows which
files you have open, where your cursor is and what you have selected, and shows
its changes as diffs that you can edit, accept or reject.`,
		Example: `  pollux serve              a companion for this folder, with its editor page
  pollux run                the same around gemini, in this terminal
  pollux help COMMAND       more about a command, with examples`,
		Args:              knownCommand,
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
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "show the log on standard error as well")
	root.AddCommand(a.commands(args)...)
	return root
}

// commands makes all commands, or the one alone whose name args begin with, which saves a companion's start a twentieth.
func (a *app) commands(args []string) []*cobra.Command {
	all := map[string]func() *cobra.Command{
		"serve": a.serveCommand, "run": a.runCommand, "env": a.envCommand, "status": a.statusCommand,
		"doctor": a.doctorCommand, "conform": a.conformCommand, "context": a.contextCommand, "diff": a.diffCommand,
		"open": a.openCommand, "review": a.reviewCommand, "page": a.pageCommand, "relay": a.relayCommand,
		"lsp": a.lspCommand, "install": a.installCommand, "uninstall": a.uninstallCommand, "setup": a.setupCommand,
		"detect": a.detectCommand, "extensions": a.extensions, "mcp": a.mcp,
		"sandbox": func() *cobra.Command { return confine.Command(a.kit.Console) }, "version": a.versionCommand, "pause": a.pauseCommand, "resume": a.resumeCommand,
		"keep": a.keepCommand, "stop": a.stopCommand, "mention": a.mentionCommand,
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

// prepare finds the folders, reads the settings and opens the log, before any command.
func (a *app) prepare(cmd *cobra.Command) (err error) {
	a.started = true
	if worksAlways(cmd) {
		return nil
	}
	if a.dirs, err = settings.Folders(); err != nil {
		return err
	}
	set, warnings, err := settings.Load(a.dirs.ConfigFile())
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(a.stderr, "pollux: %v\n", w)
	}
	a.settings = set
	word := set.LogLevel
	if a.logLevel != "" {
		word = a.logLevel
	}
	level, err := settings.Level(word)
	if err != nil {
		return usageError{err}
	}
	var also io.Writer
	if a.verbose {
		also = a.stderr
	}
	log, closer := settings.OpenLog(a.dirs, level, also)
	a.kit.Dirs, a.kit.Settings, a.kit.Log = a.dirs, a.settings, log
	a.log, a.closeLog = log, func() { _ = closer.Close() }
	return nil
}

// here is a folder of the user's, by default the current one, absolute and canonical.
func here(dir string) (string, error) {
	if dir == "" { // an unset variable of a script's, most likely; it does not mean the current folder
		return "", usageError{errors.New(`"" is no folder; name the folder of your project`)}
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", usageError{fmt.Errorf("the current folder is gone (%w); go to another one", words.Cause(err))}
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", usageError{fmt.Errorf("no folder %q: %w", dir, words.Cause(err))}
	}
	return path, nil
}

// extensions makes pollux extensions out of its parts.
func (a *app) extensions() *cobra.Command {
	cmd := extensions.Command(a.kit, append(tools.Commands(a.kit), model.Commands(a.kit)...)...)
	model.KeepBridge(a.kit, cmd, "install", "link", "uninstall", "update", "enable", "disable", "grant", "revoke")
	return cmd
}

// mcp makes pollux mcp, with the editor's tools.
func (a *app) mcp() *cobra.Command {
	return model.MCP(a.kit, func(s *mcp.Server, folder string, write bool) {
		idetools.Add(s, idetools.Options{Dirs: a.dirs.Run, Folder: folder, Write: write})
	})
}
