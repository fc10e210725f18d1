package mcp_test

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// SPEC A-1, L-3: each agent has its own token, and it opens that agent's sessions only, also those of an earlier life.
func TestAgentsApart(t *testing.T) {
	const other = "another-token-that-is-as-long-as-a-real-one-is-too"
	keys := [][]byte{[]byte(strings.Repeat("k", 32)), []byte(strings.Repeat("q", 32))}
	both := func(o *mcp.Options) {
		o.Agents[0].SessionKey = keys[0]
		o.Agents = append(o.Agents, mcp.Agent{Name: "qwen", Label: "Qwen Code", Token: other, SessionKey: keys[1], Dialect: gemini.Dialect{}})
	}
	b := newBench(t, both)
	one, two := b.cli(), b.cli()
	two.token = other
	for _, c := range []*cli{one, two} {
		c.initialize("2025-06-18")
	}
	var labels []string
	for _, s := range b.server.Sessions() {
		labels = append(labels, s.Agent+": "+s.Label)
	}
	if got := strings.Join(labels, ", "); got != "gemini: Gemini CLI #1, qwen: Qwen Code #2" {
		t.Errorf("sessions: %s", got)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	check := func(when string) {
		t.Helper()
		for c, want := range map[*cli]int{one: 200, two: 200} {
			if res := c.post(ping); res.status != want {
				t.Errorf("%s: with its own token %d", when, res.status)
			}
		}
		crossed := *one
		crossed.token = other
		if res := crossed.post(ping); res.status != 404 {
			t.Errorf("%s: another agent's token on a session: %d %s", when, res.status, res.body)
		}
	}
	check("from the start")

	path := b.dir + "/a"
	d := two.mustOpen(path, "x")
	if owner := d.Label(); owner != "Qwen Code #2" {
		t.Errorf("the proposal is %s's", owner)
	}
	if err := b.registry.Accept(d.ID(), d.Now().Seen, nil); err != nil {
		t.Fatal(err)
	}
	l := two.listen()
	if e := l.next(); e.method != "ide/diffAccepted" {
		t.Errorf("the other agent hears %+v", e)
	}

	after := newBench(t, both)
	one.b, two.b = after, after
	check("after a restart")
	if infos := after.server.Sessions(); len(infos) != 2 || infos[1].Label != "Qwen Code #2" {
		t.Errorf("adopted: %+v", infos)
	}
	third := newBench(t, both)
	owner, ok := third.server.Adopt(two.session)
	if !ok {
		t.Fatal("a session of the other agent's is not adopted for its diff")
	}
	if _, err := third.registry.Open(t.Context(), owner, review.Proposal{Key: "/p", Path: "/p", New: "x"}, nil); err != nil {
		t.Error(err)
	}
}
