package extensions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// origin returns the lines about a plan's source.
func origin(p *store.Plan) []string {
	f := p.Fetched
	lines := []string{"from " + f.Source.String()}
	switch {
	case f.Tag != "":
		lines = append(lines, "release "+f.Tag)
	case f.Commit != "":
		lines = append(lines, "commit "+f.Commit)
	}
	if f.Source.Kind == source.Link {
		return append(lines, "linked: whatever that folder holds is used, also after it changes")
	}
	return append(lines, "content "+p.Hash)
}

// maxWarnings bounds the warnings about an extension's files that stand above a question.
const maxWarnings = 10

// showPlan prints what a plan would do. It uses stderr, because it belongs to a question and is not a result.
func showPlan(kit *tools.Kit, p *store.Plan) {
	p.Manifest.Description = strings.TrimSpace(p.Manifest.Description)
	line := func(s string) { fmt.Fprintln(kit.Err, words.Printable(s)) }
	head := p.Manifest.Name + " " + p.Manifest.Version
	if p.Old != nil && p.Old.Manifest.Version != p.Manifest.Version {
		head = fmt.Sprintf("%s %s → %s", p.Manifest.Name, p.Old.Manifest.Version, p.Manifest.Version)
	}
	fmt.Fprintln(kit.Err, console.Paint(kit.Err, console.Bold, words.Printable(head)))
	if p.Manifest.Description != "" {
		line("  " + p.Manifest.Description)
	}
	for _, l := range origin(p) {
		line("  " + l)
	}
	warnings := slices.DeleteFunc(slices.Clone(p.Findings), func(f manifest.Finding) bool { return f.Severity != manifest.Warning })
	for _, f := range warnings[:min(maxWarnings, len(warnings))] {
		line("  " + f.String())
	}
	if n := len(warnings) - maxWarnings; n > 0 {
		line(fmt.Sprintf("  … and %s; pollux extensions validate FOLDER shows all", count(n, "more warning")))
	}
	now := capabilities(p.Manifest)
	if p.Old == nil {
		for _, section := range now {
			line("  " + section.Title + ":")
			for _, l := range section.Lines {
				line("    " + l)
			}
		}
		return
	}
	old := capabilities(p.Old.Manifest)
	added, removed := news(old, now), news(now, old)
	more := beyond(p)
	switch {
	case len(added)+len(removed)+len(more) == 0:
		line("  What it may do stays as it was.")
	case len(added) == 0 && len(more) > 0: // what the text omits
		for _, m := range more {
			line(fmt.Sprintf("  Changed: %s %q", m.Kind, m.Name))
		}
	}
	for _, part := range []struct {
		title, sign string
		lines       []string
	}{{"New", "+", added}, {"No longer", "-", removed}} {
		if len(part.lines) > 0 {
			line("  " + part.title + ":")
		}
		for _, l := range part.lines {
			line("    " + part.sign + " " + l)
		}
	}
}

// news returns what one version says and another does not, each line with its title. Lines are compared only within
// their section, so that no document can be worded to hide a hook of the next version.
func news(than, of []wordSection) []string {
	var out []string
	for _, s := range of {
		var known []string
		for _, t := range than {
			if t.Kind == s.Kind {
				known = t.Lines
			}
		}
		for _, l := range s.Lines {
			if !slices.Contains(known, l) {
				out = append(out, s.Title+": "+strings.TrimSpace(l))
			}
		}
	}
	return out
}

// asksAnew reports whether an update may do anything that the installed version may not.
func asksAnew(p *store.Plan) bool {
	return p.Old == nil || p.Old.Metadata == nil || p.Old.Metadata.Source != p.Metadata.Source || p.Moved || p.Older ||
		len(beyond(p)) > 0
}

// beyond returns what an update may do that the installed version may not.
func beyond(p *store.Plan) []consent.Addition {
	return consent.CapabilitiesOf(p.Manifest).Beyond(consent.CapabilitiesOf(p.Old.Manifest))
}
