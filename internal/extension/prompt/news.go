package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/capability"
)

// entries returns the list of extensions in a summary, in at most budget tokens, without the text around it; "" for
// an empty set.
func entries(set *capability.Set, style Style, budget int) string {
	return Summarize(set, &SummaryOptions{Style: style, Budget: budget, bare: true}).Text
}

// Addition returns what a workspace adds to the summary of base: what only set offers, and what it lacks; "" if both
// offer the same. A model reads it after the summary of base.
func Addition(base, set *capability.Set, style Style, budget int) string {
	known := map[string]bool{}
	for _, name := range slices.Concat(names(base), base.Waiting()) {
		known[name] = true
	}
	own := set.Only(func(x *capability.Extension) bool { return !known[x.Name] })
	if len(names(base)) == 0 && len(names(own)) > 0 {
		return Summarize(own, &SummaryOptions{Style: style, Budget: budget}).Text
	}
	var b strings.Builder
	if text := entries(own, style, budget); text != "" {
		b.WriteString("In this workspace you have these extensions as well:\n\n" + text)
	}
	if gone := without(names(base), names(set)); len(gone) > 0 {
		fmt.Fprintf(&b, "Switched off in this workspace, with all functions and docs: %s.\n", list(gone))
	}
	b.WriteString(waitingLine(own, style))
	return strings.TrimLeft(b.String(), "\n")
}

// A Told is what a client learned about extensions when its session began. It is read-only.
type Told struct {
	entries map[string]string // name → full text about an extension that was offered
	names   []string          // of all extensions in the text
}

// NewTold records what was offered when a session began, and the extensions that its text names.
func NewTold(set *capability.Set, text string, style Style) *Told {
	t := &Told{entries: map[string]string{}}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "- **"); ok {
			name, _, _ := strings.Cut(rest, "**")
			t.names = append(t.names, Line(name, 0))
		}
	}
	counted := strings.Contains(text, moreWords)
	for _, x := range set.Extensions() {
		e := entryOf(set, x, style)
		for _, shown := range e.text[:leftOut] {
			if counted || strings.Contains(text, shown) {
				t.entries[x.Name] = e.text[full]
			}
		}
	}
	return t
}

// newsBudget bounds the cost of news in each request, in tokens.
const newsBudget = 600

// News returns what is new or gone since the client was told; "" for nothing.
func (t *Told) News(set *capability.Set, style Style) string {
	fresh := set.Only(func(x *capability.Extension) bool { return t.entries[x.Name] != entryOf(set, x, style).text[full] })
	gone := without(t.names, names(set))
	for name := range t.entries {
		if !slices.Contains(names(set), name) && !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	var b strings.Builder
	if text := entries(fresh, style, newsBudget); text != "" {
		b.WriteString("\n\nThese extensions are here as well, or have changed since the session began:\n" + text)
	}
	if len(gone) > 0 {
		fmt.Fprintf(&b, "\nNot here, or not any more: %s.", list(gone))
	}
	return b.String()
}

// names returns the names of the offered extensions.
func names(set *capability.Set) []string {
	var out []string
	for _, x := range set.Extensions() {
		out = append(out, x.Name)
	}
	return out
}

// without returns the names in all that are not in some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}

// maxListed bounds how many names are listed.
const maxListed = 20

func list(names []string) string {
	if n := len(names); n > maxListed {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", n-maxListed)
	}
	return strings.Join(names, ", ")
}
