package mcp_test

import (
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"net/http"
	"strings"
	"testing"
)

// SPEC A-1: the token of an earlier life serves the sessions that existed then, and nothing else: no new session, no session
// of this life, no forged one, no path without a session. The token of this life serves all.
func TestOlderToken(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	before := newBench(t, func(o *mcp.Options) { o.Agents[0].SessionKey = key })
	old := before.connect()
	const fresh = "the token of this life, which is another one"
	after := newBench(t, func(o *mcp.Options) {
		a := &o.Agents[0]
		a.SessionKey, a.Token, a.Older = key, fresh, []string{"an even older one", testToken}
	})
	ask := func(token, session, method, path, body string) int {
		t.Helper()
		c := after.cli()
		c.session = session
		r := c.request(method, path, body)
		r.Header.Set("Authorization", "Bearer "+token)
		return c.do(r).status
	}
	const ping, initialize = `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	forged := "A" + old.session[1:]
	if forged == old.session {
		forged = "B" + old.session[1:]
	}
	fromNow := after.cli()
	r := fromNow.request(http.MethodPost, "/mcp", initialize)
	r.Header.Set("Authorization", "Bearer "+fresh)
	current := fromNow.do(r).header.Get("Mcp-Session-Id")
	for name, tt := range map[string]struct {
		token, session, method, path, body string
		want                               int
	}{
		"an old session, the old token":        {testToken, old.session, "POST", "/mcp", ping, 200},
		"an old session, the new token":        {fresh, old.session, "POST", "/mcp", ping, 200},
		"a new session, the old token":         {testToken, "", "POST", "/mcp", initialize, 401},
		"a new session, an even older token":   {"an even older one", "", "POST", "/mcp", initialize, 401},
		"a session of now, the old token":      {testToken, current, "POST", "/mcp", ping, 401},
		"a session of now, the new token":      {fresh, current, "POST", "/mcp", ping, 200},
		"a forged session, the old token":      {testToken, forged, "POST", "/mcp", ping, 401},
		"a session that is no id":              {testToken, "x", "POST", "/mcp", ping, 401},
		"no session, the old token, elsewhere": {testToken, "", "GET", "/keep-alive", "", 401},
		"writing a file by the old token":      {testToken, "", "POST", "/write-file", "{}", 401},
		"no token":                             {"", old.session, "POST", "/mcp", ping, 401},
		"a new session, the new token":         {fresh, "", "POST", "/mcp", initialize, 200},
	} {
		if got := ask(tt.token, tt.session, tt.method, tt.path, tt.body); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
