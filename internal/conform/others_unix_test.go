//go:build unix

package conform

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/codex"
	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
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
			others = append(others, Other{Name: a.Name, Label: a.Label, Trials: a.Trials, Door: finding.Door{Token: in.Token}})
			if change != nil {
				change(a.Name, &in)
			}
			o.Agents = append(o.Agents, in)
		}
	}})
	for i := range others {
		if a, _ := agent.Find(others[i].Name); !a.Private() {
			others[i].Door.Port = c.Port
		} else {
			others[i].Door.Socket = c.Socket
		}
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

// vectors plays the vectors of the other agents with a user in front of the editor, and returns the results by name.
func vectors(t *testing.T, c *clienttest.Companion, target Target, only ...string) map[string]Check {
	t.Helper()
	target.Dir, target.Wait, target.Driver = c.Root, 30*time.Second, &hand{c: c, buffers: map[string]string{}}
	dir, err := os.MkdirTemp(c.Root, "pollux-conform-") // as Run makes it
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: target, ctx: t.Context(), dir: dir, http: plain()}
	all, err := contract.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if target, ok := r.targetOf(a); ok && a.Agent() != "" && (len(only) == 0 || slices.Contains(only, a.Name)) {
			r.archive(a, target)
		}
	}
	checks := map[string]Check{}
	for _, c := range r.all {
		checks[c.Name] = c
	}
	return checks
}

// ofCodex serves Codex beside a companion.
func ofCodex(t *testing.T, c *clienttest.Companion) Other {
	t.Helper()
	temp, err := os.MkdirTemp("/tmp", "pcx") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	s, err := codex.Serve(temp, func() *state.Snapshot {
		snap := *c.Store.Snapshot()
		snap.Roots = []string{c.Root}
		return &snap
	}, func(proc.Info) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	a, _ := agent.Find(codex.Name)
	return Other{Name: a.Name, Label: a.Label, Trials: a.Trials, Door: finding.Door{Socket: codex.Path(temp), Dir: c.Root}}
}

// SPEC CC-5 to CC-17, OC-1 to OC-3, GC-1 to GC-5, CX-1, CX-2: a correct companion passes the vectors of the other agents.
func TestVectorsOfAgents(t *testing.T) {
	t.Parallel()
	c, target := letsIn(t, nil)
	target.Others = append(target.Others, ofCodex(t, c))
	all := vectors(t, c, target)
	for _, c := range all {
		if mention := strings.HasPrefix(c.Name, "CC-7a") || strings.HasPrefix(c.Name, "OC-3b") || strings.HasPrefix(c.Name, "GC-5c"); (c.Result == Skip) != mention || c.Result == Fail {
			t.Errorf("%+v", c)
		}
	}
	if len(all) < 100 {
		t.Errorf("only %d checks", len(all))
	}
}

// A fault on another agent's wire fails the vector that is about it, and evidence tells no token.
func TestVectorsOfAgentsFind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(name string, a *mcp.Agent)
		failed []string
	}{
		"opencode counts from 0": {func(name string, a *mcp.Agent) {
			if name == "claude" {
				a.Also = nil
			}
		}, []string{"OC-3a"}},
		"any header brings the token": {func(name string, a *mcp.Agent) {
			if name == "claude" {
				a.TokenHeader = "Authorization"
			}
		}, []string{"CC-5a", "CC-8a"}},
		"Copilot CLI's token comes as a bearer": {func(name string, a *mcp.Agent) {
			if name == "copilot" {
				a.TokenScheme = "Bearer "
			}
		}, []string{"GC-1a", "GC-2a", "GC-3a"}},
	} {
		c, target := letsIn(t, tt.change)
		failed := map[string]bool{}
		for _, c := range vectors(t, c, target, tt.failed...) {
			vector, _, _ := strings.Cut(c.Name, "/")
			failed[vector] = failed[vector] || c.Result == Fail
			if strings.Contains(c.Evidence, target.Others[0].Door.Token) {
				t.Errorf("%s: a token is shown: %s", name, c.Evidence)
			}
		}
		for _, vector := range tt.failed {
			if !failed[vector] {
				t.Errorf("%s: %s passes", name, vector)
			}
		}
	}
}

// What an agent reads is compared, and words for people are not.
func TestSameLines(t *testing.T) {
	t.Parallel()
	text := func(blocks ...string) string {
		list := []map[string]string{}
		for _, b := range blocks {
			list = append(list, map[string]string{"type": "text", "text": b})
		}
		data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{"content": list}})
		return string(data)
	}
	for name, tt := range map[string]struct {
		want, got string
		same      bool
	}{
		"the same":                  {text("FILE_SAVED", "x"), text("FILE_SAVED", "x"), true},
		"another text":              {text("FILE_SAVED", "x"), text("FILE_SAVED", "y"), false},
		"a text less":               {text("FILE_SAVED", "x"), text("FILE_SAVED"), false},
		"a refusal without its tab": {text("DIFF_REJECTED", "t"), text("DIFF_REJECTED"), true},
		"accepted, not refused":     {text("DIFF_REJECTED", "t"), text("FILE_SAVED", "x"), false},
		"TAB_CLOSED accepts":        {text("FILE_SAVED", "x"), text("TAB_CLOSED"), false},
		"other words":               {text("TAB_CLOSED"), text("closed"), true},
		"words that decide":         {text("TAB_CLOSED"), text("FILE_SAVED"), false},
		"no words":                  {text("TAB_CLOSED"), text(""), false},
		"no error":                  {`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}`, text("no"), false},
		"other words for people":    {text(`{"success":false,"message":"a"}`), text(`{"success":false,"message":"b"}`), true},
		"another member":            {text(`{"success":false}`), text(`{"success":true}`), false},
		"another request's":         {text("TAB_CLOSED"), strings.Replace(text("TAB_CLOSED"), `"id":1`, `"id":2`, 1), false},
		"one more":                  {text("TAB_CLOSED"), text("TAB_CLOSED") + "\n(end)", false},
		"Codex's answer":            {`{"type":"response","requestId":"1","resultType":"success","result":{"a":1}}`, `{"type":"response","requestId":"1","resultType":"success","result":{"a":1},"more":1}`, true},
		"another answer to Codex":   {`{"type":"response","requestId":"1","resultType":"success","result":{"a":1}}`, `{"type":"response","requestId":"1","resultType":"success","result":{"a":2}}`, false},
		"a context, not an error":   {`{"type":"response","requestId":"1","resultType":"error","error":"e"}`, `{"type":"response","requestId":"1","resultType":"success","result":{}}`, false},
		"no end":                    {"(end)", text("x"), false},
	} {
		if same, why := sameLines(tt.want, tt.got, true); same != tt.same {
			t.Errorf("%s: %v %s", name, same, why)
		}
	}
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
