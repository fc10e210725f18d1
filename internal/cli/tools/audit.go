package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/extension/audit"
)

func auditCommand(kit *Kit) *cobra.Command {
	var since string
	var asJSON, follow bool
	cmd := &cobra.Command{
		Use:   "audit [EXT]",
		Short: "Show what extensions' tools did and were denied",
		Long: `Shows, oldest first: each run of a tool, each refused run, each host that a tool
was not allowed to contact, and your answers. Arguments are shown by name, never
by value. The log is in pollux's state folder. It holds no secrets, and about the
last 20 MiB.`,
		Example: `  pollux extensions audit code-analyzer --since 1h
  pollux extensions audit --since 2026-11-01 --json
  pollux extensions audit --follow`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := auditQuery(args, since, time.Now())
			if err != nil {
				return err
			}
			return showAudit(cmd.Context(), kit, q, asJSON, follow)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "nothing older: an `AGE` such as 30m, 1h or 7d, or a date such as 2026-11-01")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line, as the log has them")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	return cmd
}

// auditQuery converts the arguments to a query.
func auditQuery(args []string, since string, now time.Time) (q audit.Query, err error) {
	q.Extension = strings.Join(args, "")
	if since == "" {
		return q, nil
	}
	if days, ok := strings.CutSuffix(since, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			q.Since = now.Add(-time.Duration(n) * 24 * time.Hour)
			return q, nil
		}
	}
	if age, err := time.ParseDuration(since); err == nil && age >= 0 {
		q.Since = now.Add(-age)
		return q, nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04"} {
		if q.Since, err = time.ParseInLocation(form, since, time.Local); err == nil {
			return q, nil
		}
	}
	return q, console.Usage(fmt.Errorf("--since %q: write an age such as 30m, 1h or 7d, or a date such as 2026-11-01", since))
}

func showAudit(ctx context.Context, kit *Kit, q audit.Query, asJSON, follow bool) error {
	show := func(e audit.Entry) error { return auditLine(kit, e) }
	if asJSON {
		enc := json.NewEncoder(kit.Out)
		enc.SetEscapeHTML(false)
		show = func(e audit.Entry) error { return enc.Encode(e) }
	}
	if follow {
		ctx, stop := console.Interrupted(ctx)
		defer stop()
		err := kit.Audit().Follow(ctx, q, show)
		if err == nil && ctx.Err() != nil {
			return nil // Ctrl-C is the normal end
		}
		return err
	}
	entries, err := kit.Audit().Read(q)
	if err != nil {
		return err
	}
	if !asJSON {
		entries = withoutEnded(entries)
		show = func(e audit.Entry) error {
			if e.Event == audit.Started {
				e.Event, e.Why = audit.Consent, "started, and has not ended: it still runs, or pollux was killed"
			}
			return auditLine(kit, e)
		}
		if len(entries) == 0 {
			kit.Say("nothing is recorded")
		}
	}
	for _, e := range entries {
		if err := show(e); err != nil {
			return err
		}
	}
	return nil
}

// withoutEnded leaves out the start of each run whose end is included.
func withoutEnded(entries []audit.Entry) []audit.Entry {
	ended := map[string]bool{}
	for _, e := range entries {
		if e.Run != "" && e.Event != audit.Started && e.Event != audit.Host && e.Event != audit.File {
			ended[e.Run] = true
		}
	}
	return slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Event == audit.Started && ended[e.Run] })
}

// auditLine prints one entry for a person.
func auditLine(kit *Kit, e audit.Entry) error {
	what := e.Extension
	if e.Tool != "" {
		what += " " + e.Tool + "(" + strings.Join(e.Args, ", ") + ")"
	}
	if e.By != "" {
		what += ", for " + e.By
	}
	kit.Say("%s  %s: %s", e.Time.Local().Format("2006-01-02 15:04:05"), what, auditWords(e))
	return nil
}

// auditWords returns the result of an entry in words.
func auditWords(e audit.Entry) string {
	switch e.Event {
	case audit.Started:
		return "started"
	case audit.Host:
		return fmt.Sprintf("refused to contact %s: %s (%d×)", e.Target, e.Why, e.Count)
	case audit.File:
		return fmt.Sprintf("kept from %s (%s)", e.Target, e.Why)
	case audit.Refused:
		return "not run: " + e.Why
	case audit.Consent:
		return e.Why
	case audit.Ended:
	}
	var parts []string
	switch {
	case e.Limit != "":
		parts = append(parts, "ended by its limit of "+e.Limit)
	case e.Signal != 0:
		parts = append(parts, fmt.Sprintf("ended by signal %d", e.Signal))
	case e.Exit != nil && *e.Exit != 0:
		parts = append(parts, fmt.Sprintf("failed with exit code %d", *e.Exit))
	case e.Exit == nil:
		parts = append(parts, e.Why)
	default:
		parts = append(parts, "ran")
	}
	parts = append(parts, fmt.Sprintf("%d ms", e.Milliseconds), fmt.Sprintf("%d bytes of output", e.Stdout+e.Stderr))
	if e.Assurance == "none" {
		parts = append(parts, "WITHOUT A SANDBOX")
	} else if e.Assurance != "" && e.Assurance != "full" {
		parts = append(parts, e.Assurance+" sandbox")
	}
	return strings.Join(parts, ", ")
}
