package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/host"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

func bridgeCommand(kit *tools.Kit) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Make today's Gemini CLI use the extensions' tools and documents",
		Long: `Gemini CLI itself knows nothing of the tools and documents of extensions. The
bridge is one small extension that pollux writes into the CLI's folder. By it the
next gemini session learns what there is, and calls it through pollux, in the
sandbox. The bridge names only extensions that you agreed to.`,
		Example: `  pollux extensions bridge install
  pollux extensions bridge status
  pollux extensions bridge remove`,
		Args: console.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(bridgeInstallCommand(kit), bridgeRemoveCommand(kit), bridgeStatusCommand(kit))
	return cmd
}

func bridgeInstallCommand(kit *tools.Kit) *cobra.Command {
	var headless, noHeadless, dryRun bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Write the bridge, or bring it up to date",
		Long: `Writes the bridge into Gemini CLI's extensions folder. It is kept current by
itself from then on; installing it again does no harm.

In a terminal Gemini CLI asks you before it calls a tool. Without a terminal
(gemini -p) it hides such tools from the model. --headless changes only that. It
writes a rule for the CLI's policies: sessions without a terminal may then call
EVERY tool that pollux offers, now and later, WITHOUT asking. pollux still offers
only tools of extensions that you agreed to, and each runs in its sandbox.`,
		Example: `  pollux extensions bridge install
  pollux extensions bridge install --headless
  pollux extensions bridge install --no-headless`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if headless && noHeadless {
				return console.Usage(errors.New("--headless and --no-headless exclude each other"))
			}
			if headless && !dryRun {
				if err := tools.ByPerson(cmd.Context(), kit, "--headless"); err != nil {
					return err
				}
			}
			var choice *bool
			if headless || noHeadless {
				choice = &headless
			}
			text, _, err := installBridge(cmd.Context(), kit, choice, dryRun)
			if err == nil {
				kit.Say("%s", text)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&headless, "headless", false, "let gemini -p call every offered tool without asking")
	cmd.Flags().BoolVar(&noHeadless, "no-headless", false, "take that back")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	return cmd
}

func bridgeRemoveCommand(kit *tools.Kit) *cobra.Command {
	return &cobra.Command{
		Use:     "remove",
		Short:   "Take the bridge away without a trace",
		Long:    `Removes the bridge from Gemini CLI's extensions folder, with the rule of --headless.`,
		Example: `  pollux extensions bridge remove`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := removeBridge(cmd.Context(), kit)
			if err != nil {
				return err
			}
			if !removed {
				return console.No(errors.New("there is no bridge"))
			}
			kit.Say("the bridge is gone")
			return nil
		},
	}
}

func bridgeStatusCommand(kit *tools.Kit) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether the bridge is there and works",
		Long: `Says where the bridge is, what it starts, and how many tokens it takes of each
session. If something keeps it from working, it names the cause and the command
that helps: another server in its place, settings that block it, a binary that
has gone. It also names programs that pass for pollux. The exit code is 1 when
the bridge is missing or does not work.`,
		Example: `  pollux extensions bridge status --json`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return bridgeStatus(kit, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead")
	return cmd
}

func bridgeStatus(kit *tools.Kit, asJSON bool) error {
	s, err := kit.Store()
	if err != nil {
		return err
	}
	st, err := lookAtBridge(s)
	if err != nil {
		return err
	}
	cost := bridgeCost{State: st}
	if st.Installed {
		if err := addCost(kit, &cost); err != nil {
			return err
		}
	}
	if asJSON {
		if err := kit.PrintJSON(cost); err != nil {
			return err
		}
	} else if st.Installed {
		kit.Say("installed in %s", st.Folder)
		kit.Say("starts %s", st.Command)
		kit.Say("is the MCP server %s to Gemini CLI", st.Server)
		kit.Say("takes about %d tokens of each request: %d the summary, %d functions", cost.RequestTokens, cost.SummaryTokens, cost.Functions.Tokens)
		if f := cost.Functions; f.Gateway {
			kit.Say("declares %d of %s, and one that runs any of them; the rest become functions when the model asks what they do, or when you pin them (tools.pinned)", f.Declared, words.Plural(f.Tools, "tool"))
		}
		if st.Headless {
			kit.Say("sessions without a terminal may call every offered tool without asking, by %s", st.Policy)
		} else {
			kit.Say("sessions without a terminal have no tools of it (bridge install --headless changes that)")
		}
	}
	if !asJSON {
		for _, t := range st.Troubles {
			kit.Note(troubleText(t))
		}
	}
	if !st.Works() {
		return console.Exit(console.CodeNo)
	}
	return nil
}

// lookAtBridge is bridge.Look, and remarks a bridge that starts another program than this one.
func lookAtBridge(s *store.Store) (bridge.State, error) {
	st, err := bridge.Look(s)
	self, selfErr := os.Executable()
	if err != nil || selfErr != nil || !st.Installed || st.Missing || console.Temporary(self) {
		return st, err
	}
	theirs, err1 := os.Stat(st.Command)
	ours, err2 := os.Stat(self)
	if err1 == nil && err2 == nil && !os.SameFile(theirs, ours) {
		what := words.Printable(fmt.Sprintf("the bridge starts %q, which is another program than this %q", st.Command, self))
		st.Troubles = append(st.Troubles, bridge.Trouble{Kind: "changed", What: what, Mend: "pollux extensions bridge install"})
	}
	return st, nil
}

// bridgeCost is the bridge's state, and what it costs in the working folder.
type bridgeCost struct {
	bridge.State
	// SummaryTokens is the size of the context files here; RequestTokens adds the functions: the cost of each
	// request.
	SummaryTokens int       `json:"summaryTokens"`
	RequestTokens int       `json:"requestTokens"`
	Functions     host.Cost `json:"functions"`
}

func addCost(kit *tools.Kit, c *bridgeCost) error {
	d, err := newDispatcher(kit, "a model", nil, true)
	if err != nil {
		return err
	}
	set, err := d.Refresh()
	if err != nil {
		return err
	}
	o, _ := bridgeOptions(kit, c.Server)
	c.SummaryTokens, c.Functions = prompt.Tokens(bridgeText(kit)), host.CostOf(o, set)
	c.RequestTokens = c.SummaryTokens + c.Functions.Tokens
	return nil
}

// troubleText returns a trouble as one line.
func troubleText(t bridge.Trouble) string { return t.What + "; " + t.Mend }

// homeStore returns the store as seen from the home folder: what applies to every session.
func homeStore(kit *tools.Kit) (*store.Store, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	return store.Open(&store.Options{WorkDir: home, Warn: kit.Note})
}

// installBridge writes the bridge and describes that in text; changed is false if it was already there. A nil
// headless keeps that setting. It does not start what it cannot complete.
func installBridge(ctx context.Context, kit *tools.Kit, headless *bool, dryRun bool) (text string, changed bool, err error) {
	s, err := kit.Store()
	if err != nil {
		return "", false, err
	}
	before, err := bridge.Look(s)
	if err != nil {
		kit.Note(err.Error())
	}
	allow := headless != nil && *headless
	if allow {
		if err := bridge.CanHeadless(s); err != nil {
			return "", false, err
		}
	}
	if dryRun {
		text, changed = wouldInstall(before, headless)
		return text, changed, nil
	}
	command, err := kit.Lasting(false)
	if err != nil {
		return "", false, err
	}
	offer, err := bridgeOffer(kit)
	if err != nil {
		return "", false, err
	}
	rule := false
	if headless != nil {
		if rule, err = bridge.Headless(ctx, s, *headless); err != nil {
			return "", false, err
		}
	}
	b := &bridge.Bridge{Store: s, Command: command, Version: console.Version()}
	if changed, err = b.Install(ctx, offer); err != nil {
		if rule {
			_, back := bridge.Headless(ctx, s, !*headless)
			err = errors.Join(err, back)
		}
		return "", false, tools.Coded(err)
	}
	text = "the bridge to Gemini CLI is up to date, in " + before.Folder
	if !before.Installed {
		text = fmt.Sprintf("wrote the bridge to Gemini CLI to %s; the next gemini session knows %s", before.Folder, words.Plural(len(offer.Everywhere.Extensions()), "extension"))
	}
	if n := len(offer.Everywhere.Waiting()); n > 0 {
		text += fmt.Sprintf(" (%s for your consent: pollux extensions consent grant NAME)", waits(n))
	}
	if allow {
		text += "; sessions without a terminal may now call every tool that pollux offers without asking"
	} else if rule {
		text += "; sessions without a terminal have no tools any more"
	}
	return text, changed || rule, nil
}

// wouldInstall describes what installBridge would do.
func wouldInstall(before bridge.State, headless *bool) (text string, changed bool) {
	text, changed = "the bridge is there already, in "+before.Folder, false
	if !before.Installed {
		text, changed = "the bridge to Gemini CLI would be written to "+before.Folder, true
	}
	switch {
	case headless == nil || *headless == before.Headless:
		return text, changed
	case *headless:
		return text + "; sessions without a terminal could then call every tool that pollux offers without asking, by " + before.Policy, true
	}
	return text + "; sessions without a terminal would have no tools any more", true
}

func waits(n int) string {
	if n == 1 {
		return "1 more waits"
	}
	return fmt.Sprintf("%d more wait", n)
}

// removeBridge removes the bridge, and reports whether there was one.
func removeBridge(ctx context.Context, kit *tools.Kit) (bool, error) {
	s, err := kit.Store()
	if err != nil {
		return false, err
	}
	return bridge.Remove(ctx, s)
}

// updateBridge updates the summary of an installed bridge.
func updateBridge(ctx context.Context, kit *tools.Kit) error {
	s, err := kit.Store()
	if err != nil || !bridge.Installed(s) {
		return err
	}
	offer, err := bridgeOffer(kit)
	if err != nil {
		return err
	}
	_, err = bridge.Refresh(ctx, s, offer)
	return err
}

// KeepBridge makes the named commands update the bridge at their end, whatever their result, and every command in
// which the user answered a consent question permanently.
func KeepBridge(kit *tools.Kit, cmd *cobra.Command, names ...string) {
	for _, sub := range cmd.Commands() {
		KeepBridge(kit, sub, names...)
		run, always := sub.RunE, slices.Contains(names, sub.Name())
		if run == nil || sub.Parent().Name() == "bridge" {
			continue
		}
		sub.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if always || kit.Answered.Load() {
				refreshBridge(cmd.Context(), kit)
			}
			return err
		}
	}
}
