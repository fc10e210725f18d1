package extensions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/words"
)

// forgetConsent deletes the answers about an extension that is gone.
func forgetConsent(ctx context.Context, kit *tools.Kit, name string) {
	if n, err := kit.Consent().Revoke(ctx, name); err != nil {
		kit.Note(fmt.Sprintf("what was answered about %s is still kept: %v", name, err))
	} else if n > 0 {
		recordAnswer(kit, name, "forgotten: the extension was uninstalled")
	}
}

// noteConsent says after an update whether the user will be asked again.
func noteConsent(kit *tools.Kit, s *store.Store, name string) {
	x, err := s.Get(name)
	if err != nil {
		return // the update is done; list reports the problem
	}
	if c := kit.ConsentOf(x); c.State == string(consent.Changed) || c.State == string(consent.Wider) {
		kit.Note(name + ": its content changed; pollux asks again before one of its tools runs")
	}
}

// recordAnswer writes an answer to the audit log.
func recordAnswer(kit *tools.Kit, extension, why string) {
	if err := kit.Audit().Append(audit.Entry{Event: audit.Consent, Extension: extension, Why: why}); err != nil {
		kit.Note(err.Error())
	}
}

func consentCommand(kit *tools.Kit) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consent",
		Short: "See and change which extensions' tools may run",
		Long: `Before a tool of an extension runs for the first time you are asked. These
commands show what you answered, answer beforehand, and take answers back. An
answer holds for the content that you saw: when a file of the extension changes,
or it may do more, you are asked again.

A model's shell can only look.`,
		Example: `  pollux extensions consent list
  pollux extensions consent grant code-analyzer
  pollux extensions consent revoke code-analyzer`,
		Args: console.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(consentListCommand(kit), consentGrantCommand(kit), consentRevokeCommand(kit))
	return cmd
}

// consentJSON is one answer of `consent list --json`.
type consentJSON struct {
	Extension   string                 `json:"extension"`
	Source      string                 `json:"source"`
	Version     string                 `json:"version"`
	Commit      string                 `json:"commit,omitempty"`
	Content     string                 `json:"content,omitempty" jsonschema:"the hash that it holds for; absent for a link"`
	Linked      bool                   `json:"linked,omitempty"`
	Permissions permission.Permissions `json:"permissions"`
	Answer      string                 `json:"answer" jsonschema:"always or never"`
	Time        string                 `json:"time" jsonschema:"RFC 3339, UTC"`
	Via         string                 `json:"via" jsonschema:"how it was given: question or command"`
	InForce     bool                   `json:"inForce" jsonschema:"whether it is what decides about the extension as it is installed now"`
}

func consentListCommand(kit *tools.Kit) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what you answered",
		Example: `  pollux extensions consent list --json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			records, err := kit.Consent().List()
			if err != nil {
				return err
			}
			list := []consentJSON{}
			_, installed, err := kit.Installed()
			if err != nil {
				return err
			}
			for _, r := range records {
				list = append(list, answerJSON(kit, r, installed))
			}
			if asJSON {
				return kit.PrintJSON(map[string][]consentJSON{"consents": list})
			}
			printConsents(kit, list)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (its form: docs/schemas)")
	return cmd
}

func answerJSON(kit *tools.Kit, r consent.Record, installed []*store.Extension) consentJSON {
	j := consentJSON{
		Extension: r.Extension, Source: words.Address(r.Source), Version: r.Version, Commit: r.Commit, Content: r.Content, Linked: r.Linked(),
		Permissions: r.Permissions, Answer: string(r.Answer), Time: r.Time.Format(time.RFC3339), Via: r.Via,
	}
	if x, err := store.Find(installed, r.Extension); err == nil {
		if subject, err := runner.Subject(x); err == nil {
			v, err := kit.Consent().Lookup(subject)
			j.InForce = err == nil && (v.Status == consent.Allowed || v.Status == consent.Denied) && v.Record.Content == r.Content && v.Record.Answer == r.Answer && v.Record.Source == r.Source
		}
	}
	return j
}

func printConsents(kit *tools.Kit, list []consentJSON) {
	if len(list) == 0 {
		kit.Say("nothing was answered yet")
	}
	for _, j := range list {
		word, state := "allowed", ""
		if j.Answer == string(consent.Never) {
			word = "refused for good"
		}
		if !j.InForce {
			state = " (not what is installed now)"
		}
		at := j.Time
		if t, err := time.Parse(time.RFC3339, j.Time); err == nil {
			at = t.Local().Format("2006-01-02 15:04")
		}
		kit.Say("%s %s: %s on %s%s", j.Extension, j.Version, word, at, state)
		kit.Say("  from %s", j.Source)
		for _, s := range consent.Sentences(j.Permissions) {
			kit.Say("  %s", s)
		}
	}
}

func consentGrantCommand(kit *tools.Kit) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "grant EXT",
		Short: "Allow an extension's tools to run, as they are now",
		Long: `Shows what the sandbox lets the extension's tools do. If you agree, pollux keeps
that answer for this content, and asks no question when a tool runs. Use it in
your own terminal: a model's shell is refused.`,
		Example: `  pollux extensions consent grant code-analyzer
  pollux extensions consent grant code-analyzer --yes      in a script of yours`,
		Args: console.OneArg("EXT"),
		RunE: func(cmd *cobra.Command, args []string) error { return grant(kit, cmd, args[0], yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "agree without being asked")
	return cmd
}

func grant(kit *tools.Kit, cmd *cobra.Command, name string, yes bool) error {
	ctx, stop := cancellable(cmd)
	defer stop()
	if err := tools.ByPerson(ctx, kit, "consent grant"); err != nil {
		return err
	}
	_, x, err := kit.Find(name)
	if err != nil {
		return err
	}
	if len(x.Manifest.Tools)+len(x.Manifest.Docs) == 0 {
		return console.No(fmt.Errorf("%q has no tools and no documents, so that there is nothing to allow", x.Name))
	}
	if x.Problem != "" {
		return console.No(fmt.Errorf("%q does not load, so that its tools cannot run: %s", x.Name, x.Problem))
	}
	subject, err := runner.Subject(x)
	if err != nil {
		return err
	}
	v, err := kit.Consent().Lookup(subject)
	if err != nil {
		return err
	}
	if v.Status == consent.Allowed {
		kit.Say("%s %s is allowed already", x.Name, subject.Version)
		return nil
	}
	if !yes {
		q := consent.NewQuestion(subject, v, x.Manifest, manifest.Tool{}, "", "")
		for _, line := range q.Lines() {
			fmt.Fprintln(kit.Err, line)
		}
		what, scope := "its tools to run", "content"
		if q.DocsOnly {
			what = "models to read its documents"
		}
		if subject.Linked() {
			scope = "link"
		}
		question := fmt.Sprintf("Allow %s, always for this %s?", what, scope)
		agreed, err := askYesNo(ctx, kit, question)
		if errors.Is(err, errUnattended) { // the user has seen what it would allow; there is no --dry-run
			return console.Usage(errors.New("this needs an answer, and there is no terminal to ask on; add --yes to agree to what is shown above"))
		}
		if err != nil {
			return err
		}
		if !agreed {
			return console.No(fmt.Errorf("%s was not allowed", x.Name))
		}
	}
	if err := kit.Consent().Grant(ctx, subject, consent.Always, ask.Typed(kit.Dirs.Run)); err != nil {
		return err
	}
	recordAnswer(kit, x.Name, "allowed for this content")
	if len(x.Manifest.Tools) == 0 {
		kit.Say("models may read the documents of %s %s now", x.Name, subject.Version)
		return nil
	}
	kit.Say("tools of %s %s may run now", x.Name, subject.Version)
	return nil
}

func consentRevokeCommand(kit *tools.Kit) *cobra.Command {
	var everything, never bool
	cmd := &cobra.Command{
		Use:   "revoke EXT",
		Short: "Take back what you answered about an extension",
		Long: `Forgets every answer about an extension, also "never". You are asked at the next
run. With --never, its tools never run again, whatever its content becomes, and
you are not asked.`,
		Example: `  pollux extensions consent revoke code-analyzer
  pollux extensions consent revoke code-analyzer --never
  pollux extensions consent revoke --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if everything == (len(args) > 0) || len(args) > 1 || everything && never {
				return console.Usage(errors.New("name one extension, or use --all"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return revoke(cmd.Context(), kit, strings.Join(args, ""), everything, never)
		},
	}
	cmd.Flags().BoolVar(&everything, "all", false, "forget every answer, also where they cannot be read")
	cmd.Flags().BoolVar(&never, "never", false, "have its tools never run")
	return cmd
}

func revoke(ctx context.Context, kit *tools.Kit, name string, everything, never bool) error {
	if err := tools.ByPerson(ctx, kit, "consent revoke"); err != nil {
		return err
	}
	if everything {
		if err := kit.Consent().RevokeAll(ctx); err != nil {
			return err
		}
		recordAnswer(kit, "*", "every answer was forgotten")
		kit.Say("every answer was forgotten")
		return nil
	}
	if never {
		return refuseForGood(ctx, kit, name)
	}
	n, err := kit.Consent().Revoke(ctx, name)
	if err != nil {
		return err
	}
	if n == 0 {
		return console.No(fmt.Errorf("nothing was answered about %q; see: pollux extensions consent list", words.Printable(name)))
	}
	recordAnswer(kit, name, "forgotten")
	kit.Say("what you answered about %s was forgotten; pollux asks again before one of its tools runs", name)
	return nil
}

func refuseForGood(ctx context.Context, kit *tools.Kit, name string) error {
	_, x, err := kit.Find(name)
	if err != nil {
		return err
	}
	subject, err := runner.Subject(x)
	if err == nil {
		err = kit.Consent().Grant(ctx, subject, consent.Never, ask.Typed(kit.Dirs.Run))
	}
	if err != nil {
		return err
	}
	recordAnswer(kit, x.Name, "refused for good")
	kit.Say("tools of %s never run now; pollux extensions consent revoke %s has pollux ask again", x.Name, x.Name)
	return nil
}
