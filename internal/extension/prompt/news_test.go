package prompt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/capability"
)

func setOf(all ...capability.Candidate) *capability.Set { return capability.New(all) }

// A workspace's addition says what only that workspace has, and what it lacks. With the summary it is complete.
func TestAddition(t *testing.T) {
	one, two, off, waits := candidate("one", "First.", 1, 0), candidate("two", "Second.", 1, 1), candidate("one", "First.", 1, 0), candidate("EVIL", "Evil.", 1, 0)
	off.Enabled, waits.Agreed = false, false
	for name, test := range map[string]struct {
		base, here *capability.Set
		want       []string
		not        string
	}{
		"the same":       {setOf(one), setOf(one), nil, ""},
		"one more":       {setOf(one), setOf(one, two), []string{"In this workspace you have these extensions as well:\n\n- **two**: Second.", "`mcp_pollux_twoTool1("}, "First"},
		"one less":       {setOf(one, two), setOf(off, two), []string{"Switched off in this workspace, with all functions and docs: one.\n"}, "Second"},
		"alone":          {setOf(off), setOf(off, two), []string{"You have the following extensions available:\n\n- **two**", "`mcp_pollux_read_doc(name)`"}, "First"},
		"waits here":     {setOf(one), setOf(one, waits), []string{"1 installed extension waits"}, "vil"},
		"waits anywhere": {setOf(one, waits), setOf(one, waits), nil, ""},
	} {
		got := Addition(test.base, test.here, Gemini("pollux"), 1000)
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
			}
		}
		if test.want == nil && got != "" || test.not != "" && strings.Contains(got, test.not) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// News is what the first text lacks, whatever its length. An extension that the text only counts is no news.
func TestTold(t *testing.T) {
	var many []capability.Candidate
	for i := range 40 {
		many = append(many, candidate(fmt.Sprintf("ext%02d", i), strings.Repeat("what it is for ", 12), 3, 2))
	}
	set := setOf(many...)
	for _, budget := range []int{0, 3000, 600} {
		told := NewTold(set, Summarize(set, &SummaryOptions{Style: Gemini("pollux"), Budget: budget}).Text, Gemini("pollux"))
		if news := told.News(set, Gemini("pollux")); news != "" {
			t.Errorf("budget %d: %s", budget, news)
		}
		more := setOf(append(many[1:], candidate("new", "It is new.", 1, 0))...)
		if news := told.News(more, Gemini("pollux")); strings.Count(news, "\n- **") != 1 || !strings.Contains(news, "- **new**: It is new.") || !strings.HasSuffix(news, "\nNot here, or not any more: ext00.") {
			t.Errorf("budget %d: %s", budget, news)
		}
	}
	stale := NewTold(set, "- **gone**: x\n- **`<evil>@**\n", Gemini("pollux"))
	news := stale.News(set, Gemini("pollux"))
	if Tokens(news) > newsBudget+80 || !strings.Contains(news, "more extensions that are not shown here") || !strings.Contains(news, "any more: '&lt;evil&gt;&#64;, gone.") {
		t.Errorf("%d tokens: %s", Tokens(news), news)
	}
	changed := candidate("ext00", "Now this.", 1, 0)
	if news := NewTold(set, Summarize(set, &SummaryOptions{Style: Gemini("pollux")}).Text, Gemini("pollux")).News(setOf(append(many[1:], changed)...), Gemini("pollux")); !strings.Contains(news, "- **ext00**: Now this.") || strings.Contains(news, "any more") {
		t.Errorf("changed: %s", news)
	}
}
