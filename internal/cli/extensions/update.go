package extensions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

func updateCommand(kit *tools.Kit) *cobra.Command {
	var f installFlags
	var all, check bool
	cmd := &cobra.Command{
		Use:   "update [NAME…]",
		Short: "Update extensions; one that fails keeps its old version",
		Long: `Fetches a new version, shows what changes, and replaces the old version in one
step. It asks you only when the new version may do more than the old one, is
older, or comes from another source. A release is updated only by a release. If an
update fails, the old version stays as it was.

The exit code is 0 when all is done or up to date, 1 when there are updates
(--check) or you said no, 3 when an update failed.`,
		Example: `  pollux extensions update --all --check
  pollux extensions update code-analyzer --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return console.Usage(errors.New("name the extensions to update, or use --all"))
			}
			return update(kit, cmd, args, check, &f)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "update every extension")
	cmd.Flags().BoolVar(&check, "check", false, "only say which ones have an update")
	f.consent(cmd)
	return cmd
}

// worst is the combined exit code of several answers: a failure outweighs a no.
type worst struct{ code int }

func (w *worst) add(code int) { w.code = max(w.code, code) }

func (w *worst) err() error {
	if w.code == console.CodeDone {
		return nil
	}
	return console.Exit(w.code)
}

func update(kit *tools.Kit, cmd *cobra.Command, names []string, check bool, f *installFlags) error {
	s, list, err := kit.Installed()
	if err != nil {
		return err
	}
	ctx, stop := cancellable(cmd)
	defer stop()
	var result worst
	chosen := list
	if len(names) > 0 {
		if chosen = choose(kit, list, names, &result); len(chosen) == 0 {
			return result.err()
		}
	}
	if len(chosen) == 0 {
		kit.Say("no extensions are installed")
	}
	for _, x := range chosen {
		err := updateOne(ctx, kit, s, x, check, len(names) == 0, f, &result)
		if ctx.Err() != nil {
			return context.Canceled
		}
		if err != nil {
			result.add(kit.Report(fmt.Errorf("%s: %w", x.Name, err)))
		}
	}
	return result.err()
}

// choose returns the named extensions. It reports unknown names, and counts them as a no.
func choose(kit *tools.Kit, list []*store.Extension, names []string, result *worst) []*store.Extension {
	var chosen []*store.Extension
	for _, n := range names {
		x, err := store.Find(list, n)
		if err != nil {
			result.add(kit.Report(tools.Coded(err)))
			continue
		}
		chosen = append(chosen, x)
	}
	return chosen
}

func updateOne(ctx context.Context, kit *tools.Kit, s *store.Store, x *store.Extension, check, all bool, f *installFlags, result *worst) error {
	if x.Bridge() {
		kit.Say("%s is pollux's bridge to Gemini CLI, and keeps itself up to date", x.Name)
		return nil
	}
	p, err := s.PlanUpdate(ctx, x, &store.PlanOptions{Fetch: fetchOptions(kit)})
	switch {
	case store.IsLinked(err):
		kit.Say("%s is linked: it is always what its folder holds", x.Name)
		return nil
	case err != nil && all && x.Metadata == nil:
		kit.Say("%s cannot be updated: nothing is recorded of its source", x.Name)
		return nil
	case err != nil:
		return fmt.Errorf("%w; version %s stays installed", err, x.Manifest.Version)
	}
	defer p.Close()
	if p.UpToDate {
		kit.Say("%s %s is up to date", x.Name, x.Manifest.Version)
		return nil
	}
	if check {
		kit.Say("%s has an update: %s → %s%s", x.Name, x.Manifest.Version, p.Manifest.Version, ageWords(p))
		result.add(console.CodeNo)
		return nil
	}
	showPlan(kit, p)
	noteReplaced(kit, s, p)
	if f.dryRun {
		kit.Say("%s would be updated: %s → %s%s; nothing was changed", x.Name, x.Manifest.Version, p.Manifest.Version, ageWords(p))
		return nil
	}
	if asksAnew(p) {
		if err := tools.NotByAgent(ctx, kit, "agreeing to what an extension may do"); err != nil {
			return err
		}
	}
	if !f.yes && asksAnew(p) {
		yes, err := askYesNo(ctx, kit, "Update it?")
		if err != nil {
			return err
		}
		if !yes {
			result.add(console.CodeNo)
			kit.Say("%s stays at %s", x.Name, x.Manifest.Version)
			return nil
		}
	}
	if err := p.Apply(ctx); err != nil {
		return fmt.Errorf("%w; version %s stays installed", err, x.Manifest.Version)
	}
	kit.Say("updated %s: %s → %s%s", x.Name, x.Manifest.Version, p.Manifest.Version, ageWords(p))
	noteConsent(kit, s, x.Name)
	return nil
}

// noteReplaced warns if a plan would replace something unexpected in the installed extension.
func noteReplaced(kit *tools.Kit, s *store.Store, p *store.Plan) {
	x := p.Old
	noteEdits(kit, s, x)
	if p.Older {
		kit.Note(fmt.Sprintf("%s: %s is older than the installed %s", x.Name, p.Manifest.Version, x.Manifest.Version))
	}
	switch {
	case p.Moved && x.Metadata == nil:
		kit.Note(fmt.Sprintf("%s: nobody recorded where it came from; it would come from %s from now on", x.Name, p.Fetched.Source))
	case p.Moved:
		kit.Note(fmt.Sprintf("%s: it came from %s and would come from %s from now on", x.Name, words.Address(x.Metadata.Source), p.Fetched.Source))
	}
}

// ageWords warns of an update to an older version; otherwise it returns "".
func ageWords(p *store.Plan) string {
	if p.Older {
		return " (an older version)"
	}
	return ""
}

// noteEdits lists the files of the installed copy that were changed by hand, because an update replaces them.
func noteEdits(kit *tools.Kit, s *store.Store, x *store.Extension) {
	v, err := s.Verify(x.Name)
	if err != nil || v.Recorded == "" || v.ByOther || v.Same() {
		return
	}
	files := slices.Concat(v.Changed, v.Added, v.Removed)
	text := strings.Join(files[:min(5, len(files))], ", ")
	if len(files) > 5 {
		text += fmt.Sprintf(" and %d more", len(files)-5)
	}
	kit.Note(fmt.Sprintf("%s was changed since it was installed (%s); that is replaced", x.Name, text))
}
