package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/ide"
	"github.com/pollux-companion/pollux/internal/proc"
)

// equipFlags are those of install and uninstall.
type equipFlags struct {
	all, list, dryRun, asJSON bool
}

func (a *app) installCommand() *cobra.Command {
	var f equipFlags
	cmd := &cobra.Command{
		Use:   "install [EDITOR…]",
		Short: "Equip editors for Gemini CLI",
		Long: `Writes pollux's plugin where an editor finds it by itself, without touching any
of your own files: neovim, vim and emacs. VS Code and its forks install their
companion themselves. For other editors it prints what to add to their settings.

A file that is in the way, or that you changed since, is named and left alone.
Without an editor it shows which ones are on this machine.`,
		Example: `  pollux install                    what there is
  pollux install neovim emacs       these two
  pollux install --all --dry-run    what would be written for every editor that is here`,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.equip(cmd.Context(), &f, args) },
		ValidArgsFunction: completeEditors,
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "every editor that pollux has a plugin for and that is on this machine")
	cmd.Flags().BoolVar(&f.list, "list", false, "show the editors, and which of them are equipped")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) uninstallCommand() *cobra.Command {
	var f equipFlags
	cmd := &cobra.Command{
		Use:   "uninstall EDITOR…",
		Short: "Remove what install wrote",
		Long: `Removes exactly the files that install wrote. A file that you changed since is
kept and named.`,
		Example:           `  pollux uninstall neovim`,
		Args:              cobra.MinimumNArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.unequip(cmd.Context(), &f, args) },
		ValidArgsFunction: completeEditors,
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func completeEditors(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return slices.Concat(ide.Editors(), ide.Forks(), ide.Snippets()), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) installer(dryRun bool) (*ide.Installer, error) {
	m, err := ide.Here()
	if err != nil {
		return nil, err
	}
	i := &ide.Installer{Machine: m, Record: filepath.Join(a.dirs.State, "installed.json"), Version: version(), DryRun: dryRun}
	i.Command, err = a.lasting(dryRun)
	return i, err
}

func (a *app) equip(ctx context.Context, f *equipFlags, args []string) error {
	i, err := a.installer(f.dryRun || f.list)
	if err != nil {
		return err
	}
	if self, err := os.Executable(); f.dryRun && err == nil && temporary(self) {
		fmt.Fprintf(a.stderr, "pollux: this is a temporary build; what is installed would start a copy of it, %s\n", i.Command)
	}
	states, err := i.States(exec.LookPath)
	if err != nil {
		return err
	}
	if f.all {
		for _, s := range states {
			if s.Program != "" && !slices.Contains(args, s.Editor) {
				args = append(args, s.Editor)
			}
		}
	}
	if f.list || len(args) == 0 {
		return a.printStates(states, f.asJSON)
	}
	return a.each(args, f, func(editor string) (ide.Report, error) {
		if _, text, ok := ide.Snippet(editor, i.Command); ok {
			where, _, _ := ide.Snippet(editor, i.Command)
			fmt.Fprintf(a.stderr, "pollux does not write into the settings of %s. Add this to %s:\n\n", editor, where)
			if !f.asJSON {
				fmt.Fprint(a.stdout, text)
			}
			return ide.Report{Editor: editor, Changes: []ide.Change{}}, nil
		}
		if command, ok, err := i.Machine.Fork(editor, exec.LookPath); ok {
			return a.fork(ctx, editor, command, f, false, err)
		}
		return i.Install(editor)
	})
}

func (a *app) unequip(ctx context.Context, f *equipFlags, args []string) error {
	i, err := a.installer(true) // nothing is to be started
	if err != nil {
		return err
	}
	i.DryRun = f.dryRun
	return a.each(args, f, func(editor string) (ide.Report, error) {
		if command, ok, err := i.Machine.Fork(editor, exec.LookPath); ok {
			return a.fork(ctx, editor, command, f, true, err)
		}
		return i.Uninstall(editor)
	})
}

// fork has VS Code or a fork of it change itself.
func (a *app) fork(ctx context.Context, editor, command string, f *equipFlags, remove bool, err error) (ide.Report, error) {
	action := "write"
	if remove {
		action = "remove"
	}
	report := ide.Report{Editor: editor, Place: command, Changes: []ide.Change{{Action: action, Path: ide.Extension}}}
	if err == nil && !f.dryRun {
		err = ide.RunFork(ctx, command, remove)
	}
	return report, err
}

// each does one thing to every editor; one that fails keeps no other from its turn.
func (a *app) each(editors []string, f *equipFlags, do func(string) (ide.Report, error)) error {
	reports, errs := []ide.Report{}, []error(nil)
	for _, editor := range editors {
		r, err := do(editor)
		switch {
		case errors.Is(err, ide.ErrUnknown):
			errs = append(errs, usageError{err})
		case errors.Is(err, ide.ErrNotInstalled):
			errs = append(errs, noError{err})
		case err != nil:
			errs = append(errs, err)
		default:
			reports = append(reports, r)
			if !f.asJSON {
				a.printEquipped(r, f.dryRun)
			}
		}
	}
	if f.asJSON {
		errs = append(errs, json.NewEncoder(a.stdout).Encode(reports))
	}
	return errors.Join(errs...)
}

func (a *app) printEquipped(r ide.Report, dry bool) {
	counts := map[string]int{}
	for _, c := range r.Changes {
		counts[c.Action]++
		if dry || c.Action == "leave" {
			fmt.Fprintf(a.stdout, "  %-6s %s\n", c.Action, c.Path)
		}
	}
	would := ""
	if dry {
		would = "would be "
	}
	fmt.Fprintf(a.stdout, "%s: %d %swritten, %d %sremoved, %d as they were, %d left because they were changed (%s)\n",
		r.Editor, counts["write"], would, counts["remove"], would, counts["keep"], counts["leave"], r.Place)
}

func (a *app) printStates(states []ide.State, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(states)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	for _, s := range states {
		state := "not equipped: pollux install " + s.Editor
		switch {
		case s.Installed != "" && len(s.Changed) > 0:
			state = fmt.Sprintf("equipped by %s, %d files changed since", s.Installed, len(s.Changed))
		case s.Installed != "":
			state = "equipped by " + s.Installed
		case s.Program == "":
			state = "not on this machine"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Editor, state, s.Program)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "VS Code and its forks: %s\nothers, by hand: %s\n", strings.Join(ide.Forks(), ", "), strings.Join(ide.Snippets(), ", "))
	return nil
}

func (a *app) detectCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "detect",
		Short: "Say which IDE this terminal belongs to, and why",
		Long: `Says which IDE this terminal belongs to, from its variables and the processes
above it. A companion's discovery file outranks that for Gemini CLI.`,
		Example: `  pollux detect --json`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.detect(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) detect(asJSON bool) error {
	f, ok := ide.Detect(os.Getenv, above())
	if !ok {
		return noError{errors.New("nothing tells which IDE this terminal belongs to; a CLI started here still finds a companion by its folder")}
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(f)
	}
	_, err := fmt.Fprintf(a.stdout, "%s (%s): %s\n", f.DisplayName, f.Name, f.Why)
	return err
}

// above are the commands of the processes above this one, the nearest first.
func above() (commands []string) {
	pid := os.Getppid()
	for range 32 {
		info, ok := proc.Lookup(pid)
		if !ok || pid <= 1 {
			break
		}
		commands = append(commands, info.Name)
		pid = info.Parent
	}
	return commands
}
