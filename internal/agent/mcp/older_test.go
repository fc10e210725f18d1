package mcp_test

import (
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/proc"
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

// askers is an Options.Process that finds what a test names: nobody, or one process.
type askers struct {
	mu  sync.Mutex
	now []proc.Info
}

func (a *askers) are(processes ...proc.Info) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = processes
}

func (a *askers) process(_, _ netip.AddrPort) []proc.Info {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.now)
}

// askBy sends one request over a connection of its own, with a token and for a session ("" for none).
func (b *bench) askBy(token, session, method, path, body string) response {
	b.t.Helper()
	c := b.cli()
	c.session = session
	r := c.request(method, path, body)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Close = true
	return c.do(r)
}

const (
	pingMessage       = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	initializeMessage = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	freshToken        = "the token of this life, which is another one"
)

// lives is a life with sessions of several processes, and the one after it, whose requests come from whom asker says.
type lives struct {
	*bench
	asker                *askers
	mine, theirs, nobody string // sessions of the life before: of this process, of another, of one that was not found
	self, other          proc.Info
}

func newLives(t *testing.T, change func(*mcp.Options)) *lives {
	t.Helper()
	self, _ := proc.Lookup(os.Getpid())
	l := &lives{asker: &askers{}, self: self, other: proc.Info{PID: os.Getppid(), Start: 7}}
	key := []byte(strings.Repeat("k", 32))
	before := newBench(t, func(o *mcp.Options) { o.Agents[0].SessionKey, o.Process = key, l.asker.process })
	for session, by := range map[*string][]proc.Info{&l.mine: {l.other, self}, &l.theirs: {l.other}, &l.nobody: nil} {
		l.asker.are(by...)
		c := before.connect()
		before.knows() // waits for the search
		*session = c.session
	}
	known := before.server.Known()
	if len(known) != 2 || len(known[l.mine]) != 2 || len(known[l.theirs]) != 1 {
		t.Fatalf("known: %v", known)
	}
	l.bench = newBench(t, func(o *mcp.Options) {
		a := &o.Agents[0]
		a.SessionKey, a.Token, a.Older = key, freshToken, []string{testToken}
		o.Process, o.Known, o.Life = l.asker.process, known, 1
		if change != nil {
			change(o)
		}
	})
	return l
}

// SPEC A-1: an older token serves a session from the processes that had it, and from nobody else; for ten minutes such a process may
// open a new one, and a session whose process was never known may come back.
func TestOlderTokenOfItsProcess(t *testing.T) {
	l := newLives(t, nil)
	later := l.self
	later.Start++
	thief := proc.Info{PID: 1 << 30, Start: 1}
	for _, tt := range []struct {
		name                         string
		by                           []proc.Info
		token, session, method, path string
		want                         int
	}{
		{"its process", []proc.Info{l.self}, testToken, l.mine, "POST", "/mcp", 200},
		{"its relay", []proc.Info{l.other}, testToken, l.mine, "POST", "/mcp", 200},
		{"a new relay of its process", []proc.Info{thief, l.self}, testToken, l.mine, "POST", "/mcp", 200},
		{"another process", []proc.Info{thief}, testToken, l.mine, "POST", "/mcp", 401},
		{"another process that looks for outcomes", []proc.Info{thief}, testToken, l.mine, "GET", "/mcp", 401},
		{"another process that deletes it", []proc.Info{thief}, testToken, l.mine, "DELETE", "/mcp", 401},
		{"another process by WebSocket", []proc.Info{thief}, testToken, l.mine, "GET", "/stream", 401},
		{"nobody knows who", nil, testToken, l.mine, "POST", "/mcp", 401},
		{"a later process of the same number", []proc.Info{later}, testToken, l.mine, "POST", "/mcp", 401},
		{"a process of no known start", []proc.Info{{PID: l.self.PID}}, testToken, l.mine, "POST", "/mcp", 401},
		{"the process of another session", []proc.Info{l.self}, testToken, l.theirs, "POST", "/mcp", 401},
		{"another process with the new token", []proc.Info{thief}, freshToken, l.mine, "POST", "/mcp", 200},
		{"a file, by a process that had a session", []proc.Info{l.self}, testToken, "", "POST", "/write-file", 401},
		{"a sign of life, likewise", []proc.Info{l.self}, testToken, "", "GET", "/keep-alive", 401},
		{"a deletion of nothing, likewise", []proc.Info{l.self}, testToken, "", "DELETE", "/mcp", 401},
		{"a session of nobody known", []proc.Info{thief}, testToken, l.nobody, "POST", "/mcp", 200}, // from now on it is the thief's
		{"the same from another", []proc.Info{l.self}, testToken, l.nobody, "POST", "/mcp", 401},
	} {
		l.asker.are(tt.by...)
		if got := l.askBy(tt.token, tt.session, tt.method, tt.path, pingMessage); got.status != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got.status, tt.want)
		}
		if tt.name == "a session of nobody known" {
			l.knows() // waits for the search
		}
	}
	l.asker.are(thief)
	if got := l.askBy(testToken, "", "POST", "/mcp", initializeMessage); got.status != 401 {
		t.Errorf("a stranger opens a session: %d", got.status)
	}
	l.asker.are(l.self)
	opened := l.askBy(testToken, "", "POST", "/mcp", initializeMessage)
	if opened.status != 200 {
		t.Fatalf("a process that had a session opens one: %d", opened.status)
	}
	session := opened.header.Get("Mcp-Session-Id")
	if got := l.askBy(testToken, session, "POST", "/mcp", pingMessage); got.status != 200 {
		t.Errorf("and uses it: %d", got.status)
	}
	l.asker.are(thief)
	if got := l.askBy(testToken, session, "POST", "/mcp", pingMessage); got.status != 401 {
		t.Errorf("a stranger uses it: %d", got.status)
	}
	l.asker.are(l.self)
	fresh := l.askBy(freshToken, "", "POST", "/mcp", initializeMessage).header.Get("Mcp-Session-Id")
	if got := l.askBy(testToken, fresh, "POST", "/mcp", pingMessage); got.status != 401 {
		t.Errorf("a session of the new token, by the old one: %d", got.status)
	}
}

// SPEC A-1: after ten minutes, an older token opens no session, and serves no session whose process is not known. It still serves the
// sessions of known processes.
func TestOlderTokenLater(t *testing.T) {
	l := newLives(t, func(o *mcp.Options) { o.OlderFor = time.Nanosecond })
	l.asker.are(l.self)
	for name, tt := range map[string]struct {
		session, body string
		want          int
	}{
		"a new session":                {"", initializeMessage, 401},
		"a session of unknown process": {l.nobody, pingMessage, 401},
		"its own session":              {l.mine, pingMessage, 200},
	} {
		if got := l.askBy(testToken, tt.session, "POST", "/mcp", tt.body); got.status != tt.want {
			t.Errorf("%s: %d, want %d", name, got.status, tt.want)
		}
	}
}

// SPEC §11.1: a session that was taken over is known by its process before it is back, so that nobody's decision waits for it.
func TestTakenOverIsKnown(t *testing.T) {
	l := newLives(t, nil)
	l.asker.are()
	if _, ok := l.server.Adopt(l.mine); !ok {
		t.Fatal("not adopted")
	}
	if pids, unknown := l.knows(); !slices.Contains(pids, os.Getpid()) || len(unknown) > 0 {
		t.Errorf("processes %v, unknown %q", pids, unknown)
	}
	if infos := l.server.Sessions(); len(infos) != 1 || infos[0].PID != os.Getpid() || infos[0].Process == "" {
		t.Errorf("%+v", infos)
	}
}

// A deleted session is over for good: after some deletions, after more than are remembered by name, and in every later life. Other
// sessions that are open, or whose process is known, stay.
func TestDeletedForGood(t *testing.T) {
	l := newLives(t, nil)
	l.asker.are(l.self)
	initialize := func() string {
		t.Helper()
		res := l.askBy(freshToken, "", "POST", "/mcp", initializeMessage)
		if res.status != 200 {
			t.Fatalf("initialize: %d", res.status)
		}
		return res.header.Get("Mcp-Session-Id")
	}
	remove := func(id string) {
		t.Helper()
		if got := l.askBy(freshToken, id, "DELETE", "/mcp", ""); got.status != 204 {
			t.Fatalf("delete: %d", got.status)
		}
	}
	open, first := initialize(), initialize()
	l.knows() // waits for the search, so that the process of open is known
	remove(first)
	var some []string
	for range mcp.DeletedIDs + 76 {
		id := initialize()
		remove(id)
		some = append(some, id)
	}
	check := func(when string) {
		t.Helper()
		for name, tt := range map[string]struct {
			id   string
			want int
		}{
			"the first":         {first, 404},
			"one of the middle": {some[len(some)/2], 404},
			"the last":          {some[len(some)-1], 404},
			"one that is open":  {open, 200},
			"one of before":     {l.mine, 200},
		} {
			if got := l.askBy(freshToken, tt.id, "POST", "/mcp", pingMessage); got.status != tt.want {
				t.Errorf("%s, %s: %d, want %d", when, name, got.status, tt.want)
			}
		}
	}
	check("now")
	known, floor := l.server.Known(), l.server.Floor()
	l.bench = newBench(t, func(o *mcp.Options) {
		o.Agents[0].SessionKey, o.Agents[0].Token, o.Life = []byte(strings.Repeat("k", 32)), freshToken, 2
		o.Process, o.Known, o.Floor, o.Deleted = l.asker.process, known, floor, some
	})
	check("in the next life")
	if again := initialize(); again == "" {
		t.Error("no new session")
	}
}

// SPEC A-1: a session of an earlier life whose processes have all ended is over for good once what was open is back, so that what is
// known does not grow from life to life. One with a process that lives is not, and only such processes are met.
func TestDesertedSession(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	before := newBench(t, func(o *mcp.Options) { o.Agents[0].SessionKey = key })
	deserted, alive := before.connect(), before.connect()
	self, _ := proc.Lookup(os.Getpid())
	ended := proc.Info{PID: self.PID, Start: self.Start + 1, Name: "ended"} // whose number another process has now
	ready := make(chan struct{})
	var met []proc.Info
	after := newBench(t, func(o *mcp.Options) {
		o.Agents[0].SessionKey, o.Life, o.Ready = key, 2, ready
		o.Known = map[string][]proc.Info{deserted.session: {ended}, alive.session: {ended, self}}
		o.Meet = func(p ...proc.Info) { met = append(met, p...) }
	})
	if want := []proc.Info{ended, self}; !slices.Equal(met, want) {
		t.Errorf("met %v, want %v", met, want)
	}
	if known := after.server.Known(); len(known) != 2 {
		t.Errorf("before all is back: %v", known)
	}
	close(ready)
	if known := after.server.Known(); len(known) != 1 || known[alive.session] == nil {
		t.Errorf("then: %v", known)
	}
	for session, want := range map[string]int{deserted.session: 404, alive.session: 200} {
		c := after.cli()
		c.session = session
		if got := c.do(c.request(http.MethodPost, "/mcp", pingMessage)).status; got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
