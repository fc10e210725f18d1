package mcp_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/copilot"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
)

// SPEC CC-7, OC-3: a mention reaches the session that it is for and no other, once, with lines as that agent counts them; where the agent has no
// word for it, or there is no such session, the caller hears so.
func TestMention(t *testing.T) {
	b := newBench(t, withClaude)
	first, second, open := b.talker("claude-code"), b.talker("claude-code"), b.talker("opencode")
	number := map[string]int{}
	for _, k := range []*talker{first, second, open} {
		k.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`) // its stream is open from its next message on
		k.answer(1)
	}
	for _, s := range b.server.Sessions() {
		number[s.Label] = s.ID
	}
	told := func(k *talker) string {
		t.Helper()
		m := k.await("a mention", func(m map[string]any) bool { return m["method"] == "at_mentioned" })
		data, _ := json.Marshal(m["params"])
		return string(data)
	}
	for _, tt := range []struct {
		label string
		k     *talker
		m     mcp.Mention
		want  string
	}{
		{"Claude Code #2", second, mcp.Mention{Path: "/p/a", First: 2, Last: 3}, `{"filePath":"/p/a","lineEnd":2,"lineStart":1}`},
		{"Claude Code #1", first, mcp.Mention{Path: "/p/é b", First: 1, Last: 1}, `{"filePath":"/p/é b","lineEnd":0,"lineStart":0}`},
		{"Claude Code #1", first, mcp.Mention{Path: "/p"}, `{"filePath":"/p"}`},
		{"opencode #3", open, mcp.Mention{Path: "/p/a", First: 2, Last: 3}, `{"filePath":"/p/a","lineEnd":3,"lineStart":2}`},
	} {
		if err := b.server.Mention(number[tt.label], tt.m); err != nil {
			t.Fatalf("%s: %v", tt.label, err)
		}
		if got := told(tt.k); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.label, got, tt.want)
		}
	}
	if err := b.server.Mention(number["opencode #3"], mcp.Mention{Path: "/p"}); !errors.Is(err, mcp.ErrNoMention) {
		t.Errorf("a folder for opencode: %v", err)
	}
	if err := b.server.Mention(99, mcp.Mention{Path: "/p"}); !errors.Is(err, mcp.ErrNoSession) {
		t.Errorf("nobody: %v", err)
	}
	for _, m := range append(append(first.seen, second.seen...), open.seen...) {
		if m["method"] == "at_mentioned" {
			t.Errorf("told twice, or of another session's: %v", m)
		}
	}
	_ = b.agent()
	for _, s := range b.server.Sessions() {
		if s.Agent == "gemini" {
			if err := b.server.Mention(s.ID, mcp.Mention{Path: "/p"}); !errors.Is(err, mcp.ErrNoMention) {
				t.Errorf("Gemini CLI: %v", err)
			}
		}
	}

}

// SPEC GC-5: lines as Copilot CLI wants them, with what stands there; columns are UTF-16 units.
func TestReference(t *testing.T) {
	d := &copilot.Dialect{}
	for want, m := range map[string]mcp.Mention{
		`{"fileUrl":"file:///p/a","filePath":"/p/a","selectedText":null,"selection":null}`:                                                                   {Path: "/p/a"},
		`{"fileUrl":"file:///p/a","filePath":"/p/a","selectedText":"x\r\né😀","selection":{"end":{"character":3,"line":2},"start":{"character":0,"line":1}}}`: {Path: "/p/a", First: 2, Last: 3, Text: "x\r\né😀"},
	} {
		var got struct {
			Method string
			Params map[string]any
		}
		if err := json.Unmarshal(d.Mention(m), &got); err != nil {
			t.Fatal(err)
		}
		var wanted map[string]any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got.Params)
		b, _ := json.Marshal(wanted)
		if got.Method != "add_file_reference" || string(a) != string(b) {
			t.Errorf("%s %s, want %s", got.Method, a, b)
		}
	}

}
