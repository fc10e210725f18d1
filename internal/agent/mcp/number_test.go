package mcp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/proc"
)

// A CLI that comes back with a new session has its number again, and meanwhile nobody else gets it: after a lost connection, and
// after a restart of the companion.
func TestNumberStays(t *testing.T) {
	asker, key := &askers{}, []byte(strings.Repeat("k", 32))
	self, _ := proc.Lookup(os.Getpid())
	parent, _ := proc.Lookup(os.Getppid())
	gone := proc.Info{PID: os.Getppid(), Start: 7}
	b := newBench(t, func(o *mcp.Options) { o.Agents[0].SessionKey, o.Process = key, asker.process })
	joins := func(by []proc.Info, want string) *cli {
		t.Helper()
		before := map[string]bool{}
		for _, s := range b.server.Sessions() {
			before[s.Label] = true
		}
		asker.are(by...)
		c := b.connect()
		b.knows() // waits for the search
		for _, s := range b.server.Sessions() {
			if !before[s.Label] && s.Label != want {
				t.Errorf("it is %q, want %q", s.Label, want)
			}
		}
		return c
	}
	leaves := func(c *cli) {
		t.Helper()
		if res := c.do(c.request("DELETE", "/mcp", "")); res.status != 204 {
			t.Fatal(res.status)
		}
	}
	one := joins([]proc.Info{self}, "Gemini CLI #1")
	joins([]proc.Info{parent}, "Gemini CLI #2")
	dead := joins([]proc.Info{gone}, "Gemini CLI #3")
	leaves(dead)
	leaves(one)
	gone.Start++
	joins([]proc.Info{gone}, "Gemini CLI #4")
	joins([]proc.Info{self}, "Gemini CLI #1")

	known := b.server.Known()
	b = newBench(t, func(o *mcp.Options) {
		o.Agents[0].SessionKey, o.Process, o.Known, o.Life = key, asker.process, known, 1
	})
	gone.Start++
	joins([]proc.Info{gone}, "Gemini CLI #3") // nobody is left who had it
	joins([]proc.Info{parent}, "Gemini CLI #2")
	joins([]proc.Info{self}, "Gemini CLI #1")
	joins([]proc.Info{self}, "Gemini CLI #4")
}
