package extensions

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// scopeOf reads --scope.
func scopeOf(text string) (store.Scope, error) {
	switch s := store.Scope(text); s {
	case store.User, store.Workspace:
		return s, nil
	}
	return "", console.Usage(fmt.Errorf("--scope is user or workspace, not %q", text))
}

func enableCommand(kit *tools.Kit, on bool) *cobra.Command {
	verb, long := "enable", `Switches an extension on. Scope user is for every folder that no rule of its own
disables; workspace is for the current folder and those below it.`
	if !on {
		verb, long = "disable", `Switches an extension off. Scope user is for every folder, those outside the
home folder included; workspace is for the current folder and those below it.`
	}
	var scope string
	cmd := &cobra.Command{
		Use:     verb + " NAME…",
		Short:   map[bool]string{true: "Switch an extension on", false: "Switch an extension off without removing it"}[on],
		Long:    long + "\nRunning sessions of Gemini CLI notice it when they are restarted.",
		Example: "  pollux extensions " + verb + " code-analyzer --scope workspace",
		Args:    someArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			where, err := scopeOf(scope)
			if err != nil {
				return err
			}
			return setEnabled(kit, cmd, args, where, on)
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "user", "how far it reaches: user or workspace")
	return cmd
}

// someArgs requires at least one name.
func someArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return console.Usage(fmt.Errorf("%s takes the name of an extension; pollux extensions list shows them", cmd.CommandPath()))
	}
	return nil
}

func setEnabled(kit *tools.Kit, cmd *cobra.Command, names []string, scope store.Scope, on bool) error {
	s, list, err := kit.Installed()
	if err != nil {
		return err
	}
	if on {
		if err := tools.NotByAgent(cmd.Context(), kit, "switching an extension on"); err != nil {
			return err
		}
	}
	var result worst
	for _, x := range choose(kit, list, names, &result) {
		if err := s.SetEnabled(cmd.Context(), x.Name, scope, on); err != nil {
			return err
		}
		word := map[bool]string{true: "enabled", false: "disabled"}[on]
		if scope == store.Workspace {
			kit.Say("%s %s in this folder and below", word, x.Name)
			continue
		}
		kit.Say("%s %s", word, x.Name)
		if after, err := s.Get(x.Name); err == nil && after.EnabledHere != on {
			kit.Note(fmt.Sprintf("a rule for this folder or one above says otherwise; %s it here with --scope workspace", map[bool]string{true: "enable", false: "disable"}[on]))
		}
	}
	return result.err()
}

func uninstallCommand(kit *tools.Kit) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "uninstall NAME…",
		Aliases: []string{"remove", "rm"},
		Short:   "Remove extensions, broken ones too",
		Long: `Removes extensions with their rules and records. NAME may be the name, the
source or the folder's path. For a linked extension, only the link is removed.`,
		Example: `  pollux extensions uninstall code-analyzer hello-extension`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return console.Usage(errors.New("name the extensions to remove, or use --all"))
			}
			return uninstall(kit, cmd, args, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every extension")
	return cmd
}

func uninstall(kit *tools.Kit, cmd *cobra.Command, names []string, all bool) error {
	s, list, err := kit.Installed()
	if err != nil {
		return err
	}
	var result worst
	chosen := list
	if !all {
		chosen = choose(kit, list, names, &result)
	} else if len(list) == 0 {
		kit.Say("no extensions are installed")
	}
	for _, x := range chosen {
		if x.Bridge() && all {
			kit.Say("%s stays: it is pollux's bridge to Gemini CLI; remove it with: pollux extensions bridge remove", x.Name)
			continue
		}
		remove := s.Uninstall
		if x.Bridge() { // and everything that belongs to it
			remove = func(ctx context.Context, _ *store.Extension) error { _, err := bridge.Remove(ctx, s); return err }
		}
		if err := remove(cmd.Context(), x); err != nil {
			result.add(kit.Report(tools.Coded(fmt.Errorf("%s: %w", x.Name, err))))
			continue
		}
		kit.Say("uninstalled %s", x.Name)
		forgetConsent(cmd.Context(), kit, x.Name)
	}
	return result.err()
}
