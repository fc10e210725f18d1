package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/ide"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
)

// equipFlags are the flags of install and uninstall.
type equipFlags struct {
	all, list, dryRun, asJSON bool
}

// Install makes pollux install.
func Install(con *console.Console) *cobra.Command {
	var f equipFlags
	cmd := &cobra.Command{
		Use:   "install [EDITOR…]",
		Short: "Install pollux's plugins into editors",
		Long: `Writes pollux's plugin where an editor finds it by itself, without touching any
of your own files: neovim, vim and emacs. VS Code and its forks (vscode,
vscode-insiders, vscodium, cursor, windsurf, code-server, positron, trae,
antigravity, theia) install pollux's extension by their own command; where that
is missing, pollux says which file to choose in the editor. For other editors it
prints what to add to their settings.

pollux leaves a file alone that is in the way, or that you have changed, and names
it. Without EDITOR it lists the editors on this machine, with their versions and
the version of the pollux that equipped them. In --json, "version" is the editor's
and "installed" the plugin's.`,
		Example: `  pollux install                    what there is
  pollux install neovim emacs       these two
  pollux install --all --dry-run    what would be written for every editor that is here`,
		RunE:              func(cmd *cobra.Command, args []string) error { return equip(cmd.Context(), con, &f, args) },
		ValidArgsFunction: completeEditors,
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "every editor that pollux has a plugin for and that is on this machine")
	cmd.Flags().BoolVar(&f.list, "list", false, "show the editors, their versions, and which of them are equipped")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// Uninstall makes pollux uninstall.
func Uninstall(con *console.Console) *cobra.Command {
	var f equipFlags
	cmd := &cobra.Command{
		Use:   "uninstall EDITOR…",
		Short: "Remove what install wrote",
		Long: `Removes exactly the files that install wrote. A file that you have changed since
is kept and named.`,
		Example:           `  pollux uninstall neovim`,
		Args:              cobra.MinimumNArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return unequip(cmd.Context(), con, &f, args) },
		ValidArgsFunction: completeEditors,
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func completeEditors(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return slices.Concat(ide.Editors(), ide.Forks(), ide.Snippets()), cobra.ShellCompDirectiveNoFileComp
}

func installer(con *console.Console, dryRun bool) (*ide.Installer, error) {
	m, err := ide.Here()
	if err != nil {
		return nil, err
	}
	i := &ide.Installer{Machine: m, Record: filepath.Join(con.Dirs.State, "installed.json"), Version: console.Version(), DryRun: dryRun}
	i.Command, err = con.Lasting(dryRun)
	return i, err
}

// editors converts what the user typed to editor names. One unknown word stops everything.
func editors(named []string) ([]string, error) {
	known := ide.Aliases()
	var names []string
	for _, word := range named {
		name := known[strings.ToLower(word)]
		if name == "" {
			hint := ""
			if near := words.Nearest(word, slices.Sorted(maps.Keys(known))); len(near) > 0 {
				hint = " (did you mean " + known[near[0]] + "?)"
			}
			return nil, console.Usage(fmt.Errorf("%q is no editor that pollux knows%s; it knows %s; of VS Code's family %s; and what to add by hand to %s",
				word, hint, strings.Join(ide.Editors(), ", "), strings.Join(ide.Forks(), ", "), strings.Join(ide.Snippets(), ", ")))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func equip(ctx context.Context, con *console.Console, f *equipFlags, words []string) error {
	args, err := editors(words)
	if err != nil {
		return err
	}
	i, err := installer(con, f.dryRun || f.list || len(args) == 0 && !f.all)
	if err != nil {
		return err
	}
	if self, err := os.Executable(); f.dryRun && err == nil && console.Temporary(self) {
		fmt.Fprintf(con.Err, "pollux: this is a temporary build; what is installed would start a copy of it, %s\n", i.Command)
	}
	states, err := i.States(ctx, paths.Program)
	if err != nil {
		return err
	}
	if f.list || len(args) == 0 && !f.all {
		return printStates(con, append(states, i.Machine.ForkStates(ctx, paths.Program)...), f.asJSON)
	}
	for _, s := range states {
		if f.all && s.Program != "" && !slices.Contains(args, s.Editor) {
			args = append(args, s.Editor)
		}
		if s.Problem != "" && slices.Contains(args, s.Editor) {
			fmt.Fprintf(con.Err, "pollux: %s is %s %s, but %s\n", s.Program, s.Editor, s.Version, s.Problem)
		}
	}
	if len(args) == 0 {
		return console.No(fmt.Errorf("none of %s is in PATH; name the one to equip all the same", strings.Join(ide.Editors(), ", ")))
	}
	return eachEditor(con, args, f, func(editor string) (ide.Report, error) {
		if where, text, ok := ide.Snippet(editor, i.Command); ok {
			return ide.Report{Editor: editor, Place: where, Changes: []ide.Change{}, Snippet: text}, nil
		}
		if command, ok, err := i.Machine.Fork(editor, paths.Program); ok {
			r, err := fork(editor, command, f.dryRun, "write", err, func() error { return i.InstallExtension(ctx, command) })
			if err != nil && !f.dryRun {
				err = byHand(con, i, err)
			}
			return r, err
		}
		return i.Install(editor)
	})
}

func unequip(ctx context.Context, con *console.Console, f *equipFlags, words []string) error {
	args, err := editors(words)
	if err != nil {
		return err
	}
	i, err := installer(con, true) // uninstalling starts no program
	if err != nil {
		return err
	}
	i.DryRun = f.dryRun
	return eachEditor(con, args, f, func(editor string) (ide.Report, error) {
		if where, _, ok := ide.Snippet(editor, i.Command); ok {
			return ide.Report{Editor: editor}, console.No(fmt.Errorf("pollux wrote nothing for %s; take out what you added to %s", editor, where))
		}
		if command, ok, err := i.Machine.Fork(editor, paths.Program); ok {
			return fork(editor, command, f.dryRun, "remove", err, func() error { return ide.RemoveExtension(ctx, command) })
		}
		r, err := i.Uninstall(editor)
		if left := r.Left(); err == nil && len(left) > 0 && len(left) == len(r.Changes) {
			err = console.No(fmt.Errorf("%s: nothing was removed: you changed what is left of the plugin since pollux wrote it, so it is kept; remove it yourself if you do not need it:\n  rm '%s'", editor, strings.Join(left, "' '")))
		}
		return r, err
	})
}

// fork makes VS Code or one of its forks install or remove the extension itself. err says that its command was not found.
func fork(editor, command string, dry bool, action string, err error, do func() error) (ide.Report, error) {
	report := ide.Report{Editor: editor, Place: command, Changes: []ide.Change{{Action: action, Path: ide.Extension}}}
	if err == nil && !dry {
		err = do()
	}
	return report, err
}

// byHand leaves the extension in a file where an editor's command could not install it, and says so beside why.
func byHand(con *console.Console, i *ide.Installer, why error) error {
	file := filepath.Join(con.Dirs.State, "pollux.vsix")
	if err := errors.Join(safefile.PrivateDir(con.Dirs.State), i.WriteExtension(file)); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w\n  or by hand: run \"Extensions: Install from VSIX…\" from the editor's palette, and choose\n  %s", why, file)
}

// eachEditor calls do for every editor. A failure does not stop the others.
func eachEditor(con *console.Console, editors []string, f *equipFlags, do func(string) (ide.Report, error)) error {
	reports, errs := []ide.Report{}, []error(nil)
	for _, editor := range editors {
		r, err := do(editor)
		switch {
		case errors.Is(err, ide.ErrNotInstalled):
			errs = append(errs, console.No(err))
		case err != nil:
			errs = append(errs, err)
		case !f.asJSON:
			printEquipped(con, r, f.dryRun)
		}
		if err == nil || len(r.Changes) > 0 {
			reports = append(reports, r)
		}
	}
	if f.asJSON {
		errs = append(errs, json.NewEncoder(con.Out).Encode(reports))
	}
	return errors.Join(errs...)
}

func printEquipped(con *console.Console, r ide.Report, dry bool) {
	if r.Snippet != "" {
		fmt.Fprintf(con.Err, "pollux does not write into the settings of %s. Add this to %s:\n\n", r.Editor, r.Place)
		fmt.Fprint(con.Out, r.Snippet)
		return
	}
	counts := map[string]int{}
	for _, c := range r.Changes {
		counts[c.Action]++
		if dry {
			fmt.Fprintf(con.Out, "  %-6s %s\n", c.Action, c.Path)
		}
	}
	would := ""
	if dry {
		would = "would be "
	}
	var says []string
	for _, of := range []struct{ action, says string }{
		{"write", would + "written"}, {"remove", would + "removed"}, {"keep", "as they were"}, {"leave", would + "kept, as you changed them"},
	} {
		if n := counts[of.action]; n > 0 {
			says = append(says, fmt.Sprintf("%d %s", n, of.says))
		}
	}
	if len(says) == 0 {
		says = []string{"nothing was left of it"}
	}
	if slices.Contains(ide.Forks(), r.Editor) {
		says[0] = ide.Extension + strings.Replace(strings.TrimPrefix(says[0], "1"), "written", "installed", 1)
	}
	fmt.Fprintf(con.Out, "%s: %s (%s)\n", r.Editor, strings.Join(says, ", "), r.Place)
	if counts["write"] > 0 && !dry {
		fmt.Fprintln(con.Out, "  next: "+nextStep(r.Editor))
	}
	for _, path := range r.Left() {
		fmt.Fprintf(con.Out, "  kept: %s was changed since pollux wrote it; remove it yourself if you do not need it\n", path)
	}
}

// nextStep says what to do in an editor that was just equipped.
func nextStep(editor string) string {
	switch {
	case slices.Contains(ide.Forks(), editor):
		return "reload its open windows, and start an agent in its terminal"
	case editor == "emacs":
		return "start it again, open a file of your project, and M-x pollux-run starts an agent"
	case editor == "micro":
		return "start it again in your project, and > term gemini starts an agent"
	case editor == "kakoune":
		return `add this line to your kakrc: source "%val{config}/pollux/pollux.kak"; then start it again in your project`
	default:
		return "start it again in your project, and :Pollux run starts an agent"
	}
}

func printStates(con *console.Console, states []ide.State, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(con.Out).Encode(states)
	}
	w := tabwriter.NewWriter(con.Out, 0, 4, 2, ' ', 0)
	for _, s := range states {
		version := s.Version
		if version == "" && s.Program != "" {
			version = "?"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Editor, version, stateOf(s), s.Program)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(con.Out, "VS Code and its forks: %s\nothers, by hand: %s\n", strings.Join(ide.Forks(), ", "), strings.Join(ide.Snippets(), ", "))
	return nil
}

// stateOf says in words whether an editor has the plugin.
func stateOf(s ide.State) string {
	var says string
	switch {
	case s.Installed != "":
		says = "equipped by pollux " + s.Installed
	case s.Program == "":
		says = "not on this machine"
	default:
		says = "not equipped: pollux install " + s.Editor
	}
	if n := len(s.Changed); n > 0 {
		says += fmt.Sprintf(", %d of its files changed since", n)
	}
	if n := len(s.Kept); n > 0 {
		says += fmt.Sprintf(", %d that you changed kept", n)
	}
	if s.Problem != "" {
		says += "; " + s.Problem
	}
	return says
}

// Detect makes pollux detect.
func Detect(con *console.Console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "detect",
		Short: "Say which IDE this terminal belongs to, and why",
		Long: `Says which IDE this terminal belongs to, from its variables and the processes
above it. A companion's discovery file outranks that for Gemini CLI.

The exit code is 1 when nothing names an IDE. --json then prints an empty "name",
and the reason.`,
		Example: `  pollux detect
  pollux detect --json    {"name":"neovim","displayName":"Neovim","why":"the variable NVIM"}`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return detect(con, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func detect(con *console.Console, asJSON bool) error {
	f, ok := ide.Detect(os.Getenv, above())
	if !ok {
		f.Why = "nothing tells which IDE this terminal belongs to; a CLI started here still finds a companion by its folder"
	}
	switch {
	case asJSON:
		if err := json.NewEncoder(con.Out).Encode(f); err != nil || ok {
			return err
		}
		return console.Exit(console.CodeNo)
	case !ok:
		return console.No(errors.New(f.Why))
	}
	_, err := fmt.Fprintf(con.Out, "%s (%s): %s\n", f.DisplayName, f.Name, f.Why)
	return err
}

// above returns the commands of the processes above this one, nearest first.
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
