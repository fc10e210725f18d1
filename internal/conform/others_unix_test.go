//go:build unix

package conform

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// letsIn starts a companion that serves every agent, each with its own token; change breaks it.
func letsIn(t *testing.T, change func(name string, a *mcp.Agent)) (*clienttest.Companion, Target) {
	t.Helper()
	var others []Other
	c, target := start(t, clienttest.Options{Token: strings.Repeat("Zx-9", 11), Change: func(o *mcp.Options) {
		for _, a := range agent.All() {
			if a.Locks == nil || a.With != "" {
				continue
			}
			in := a.Door(agent.Options{Snapshot: o.Store.Snapshot})
			in.Name, in.Label, in.Token = a.Name, a.Label, strings.Repeat(a.Name, 10)
			others = append(others, Other{Agent: a, Door: finding.Door{Token: in.Token}})
			if change != nil {
				change(a.Name, &in)
			}
			o.Agents = append(o.Agents, in)
		}
	}})
	for i := range others {
		others[i].Door.Port, others[i].Door.Socket = c.Port, c.Socket
	}
	target.Driver, target.Others = nil, others
	return c, target
}

// tally runs only the checks of the other agents, and returns their results by name.
func tally(t *testing.T, target Target) map[string]Check {
	t.Helper()
	r := &run{t: target, ctx: t.Context(), dir: newBase(t), http: plain()}
	r.t.Wait = 30 * time.Second
	r.others()
	all := map[string]Check{}
	for _, c := range r.all {
		all[c.Name] = c
	}
	return all
}

// SPEC, CC-5 to CC-17: a correct companion passes the checks of other agents, on their own wires.
func TestAgents(t *testing.T) {
	t.Parallel()
	c, target := letsIn(t, nil)
	target.Dir = c.Root
	all := tally(t, target)
	for _, c := range all {
		if c.Result != Pass || c.About == "" {
			t.Errorf("%+v", c)
		}
	}
	for _, name := range []string{"CC-8/openDiff waits", "CC-11/a session's own", "CC-5/no Origin", "Q-5/event stream (Qwen Code)", "F-1/both tools (Qwen Code)", "GC-3/open_diff waits", "GC-5/first context"} {
		if _, ok := all[name]; !ok {
			t.Errorf("%s is not tried", name)
		}
	}
	if n := len(c.Registry.Pending()); n > 0 {
		t.Errorf("%d diffs are left", n)
	}
}

// Each companion is broken in one way. That fault is found, and nothing else.
func TestAgentsFind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil  func(target *Target)
		change func(name string, a *mcp.Agent)
		failed string
	}{
		"accepts at once":   {failed: "CC-8/openDiff waits CC-11/a session's own GC-3/open_diff waits T-3/answers of two sessions (Qwen Code)"},
		"one token for all": {spoil: func(target *Target) { target.Token = target.Others[1].Door.Token }, failed: "Q-1/a token of its own (Qwen Code)"},
		"the lock's token is old": {change: func(name string, a *mcp.Agent) {
			if name == "claude" {
				a.Token += "new"
			}
		}, failed: "CC-11/a session's own CC-13/diagnostics CC-17/tools CC-5/its token opens CC-6/first context CC-8/openDiff waits"},
		"Copilot CLI is not known": {change: func(name string, a *mcp.Agent) {
			if name == "copilot" {
				a.Token += "new"
			}
		}, failed: "GC-1/its token opens GC-5/tools GC-5/first context GC-3/open_diff waits"},
		"Qwen Code is not known": {change: func(name string, a *mcp.Agent) {
			if name == "qwen" {
				a.Token += "new"
			}
		}, failed: "F-1/both tools (Qwen Code) Q-5/event stream (Qwen Code) T-3/answers of two sessions (Qwen Code) T-5/initialized gets 202 (Qwen Code) T-7/first context (Qwen Code)"},
	} {
		c, target := letsIn(t, tt.change)
		if name == "accepts at once" {
			c.Registry.SetRule(review.Rule{Mode: review.AcceptAll})
		}
		if tt.spoil != nil {
			tt.spoil(&target)
		}
		for _, c := range tally(t, target) {
			if (c.Result == Fail) != strings.Contains(tt.failed, c.Name) {
				t.Errorf("%s: %+v", name, c)
			}
			if c.Result == Fail && strings.Contains(c.Evidence, target.Others[0].Door.Token) {
				t.Errorf("%s: a token is shown: %s", name, c.Evidence)
			}
		}
	}
}

// When the companion shows no diffs, the checks that need one are skipped, with the reason.
func TestAgentsWithoutDiffs(t *testing.T) {
	t.Parallel()
	c, target := letsIn(t, nil)
	c.Registry.SetRule(review.Rule{Mode: review.Terminal})
	for _, c := range tally(t, target) {
		if want := c.Name == "CC-8/openDiff waits" || c.Name == "CC-11/a session's own" || c.Name == "GC-3/open_diff waits"; want && (c.Result != Skip || c.Evidence == "") {
			t.Errorf("%+v", c)
		}
	}
	if err := asProbe(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
