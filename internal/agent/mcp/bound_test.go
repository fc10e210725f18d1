package mcp_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// SPEC A-4: what waits to be heard counts like what is open, against one bound, until it is heard, taken back, or its session has ended.
func TestUnheardTextsCountA4(t *testing.T) {
	registry := review.New(review.Options{MaxTotal: 100})
	registry.SetRule(review.Rule{Mode: review.AcceptAll})
	t.Cleanup(registry.Shut)
	b := newBench(t, func(o *mcp.Options) { o.Registry = registry })
	text := strings.Repeat("x", 40)
	opens := func(c *cli, name string) bool {
		t.Helper()
		said := c.open(filepath.Join(b.dir, name), text)
		if !strings.Contains(said, "isError") {
			return true
		}
		if !strings.Contains(said, "too many diffs") {
			t.Errorf("it says %s", said)
		}
		return false
	}
	deaf, other := b.connect(), b.connect()
	if !opens(deaf, "a") || !opens(deaf, "b") {
		t.Fatal("within the bound, and refused")
	}
	if opens(deaf, "c") || opens(other, "d") {
		t.Error("beyond the bound, and open")
	}
	deaf.closeDiff(filepath.Join(b.dir, "a"))
	if !opens(other, "d") {
		t.Error("one was taken back, and its room is not free")
	}
	l := other.listen()
	for l.next().method != "ide/diffAccepted" {
		continue
	}
	l.close()
	if opens(deaf, "e") {
		t.Error("sent is not heard: there is no room yet")
	}
	other.listen() // with the id of what it has read
	if !opens(other, "f") {
		t.Error("one was heard, and its room is not free")
	}
	if opens(other, "g") {
		t.Error("beyond the bound again, and open")
	}
	if res := deaf.do(deaf.request("DELETE", "/mcp", "")); res.status != 204 {
		t.Fatalf("%d", res.status)
	}
	if !opens(other, "h") {
		t.Error("a session has ended, and its room is not free")
	}
	for _, id := range []string{"unknown", other.session} { // brought from an earlier life
		b.server.Bring(mcp.Unheard{Session: id, Life: "x", Outcomes: []mcp.UnheardOutcome{{Seq: 9, ID: "i", Path: "/p", As: mcp.Accepted, Content: text}}})
	}
	if opens(other, "i") {
		t.Error("brought along, and not counted")
	}
}

// SPEC A-4: a session that does not listen is told after 32 outcomes that it should.
func TestUnheardOutcomesA4(t *testing.T) {
	registry := review.New(review.Options{})
	registry.SetRule(review.Rule{Mode: review.AcceptAll})
	t.Cleanup(registry.Shut)
	b := newBench(t, func(o *mcp.Options) { o.Registry = registry })
	c := b.connect()
	for n := range 32 {
		if said := c.open(filepath.Join(b.dir, fmt.Sprint(n)), "x"); strings.Contains(said, "isError") {
			t.Fatalf("%d: %s", n, said)
		}
	}
	if said := c.open(filepath.Join(b.dir, "one more"), "x"); !strings.Contains(said, "isError") || !strings.Contains(said, "event stream") {
		t.Errorf("one more: %s", said)
	}
	c.listen()
	if said := c.open(filepath.Join(b.dir, "one more"), "x"); strings.Contains(said, "isError") {
		t.Errorf("with a stream: %s", said)
	}
}

// SPEC A-4, L-3: a CLI that is just coming back proposes, however much it has been told before: on a stream that has broken, or by a
// companion that was killed.
func TestHeardOutcomesDoNotCountA4(t *testing.T) {
	registry := review.New(review.Options{})
	registry.SetRule(review.Rule{Mode: review.AcceptAll})
	t.Cleanup(registry.Shut)
	b := newBench(t, func(o *mcp.Options) { o.Registry = registry })
	c := b.connect()
	l := c.listen()
	for n := range 40 {
		if said := c.open(filepath.Join(b.dir, fmt.Sprint(n)), "x"); strings.Contains(said, "isError") {
			t.Fatalf("%d: %s", n, said)
		}
		for l.next().method != "ide/diffAccepted" {
		}
	}
	l.close()
	for deadline := time.Now().Add(time.Minute); b.server.Streams(c.session) > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if said := c.open(filepath.Join(b.dir, "with the stream gone"), "x"); strings.Contains(said, "isError") {
		t.Errorf("with the stream gone: %s", said)
	}
	other := b.connect()
	var outcomes []mcp.UnheardOutcome
	for seq := range uint64(32) {
		outcomes = append(outcomes, mcp.UnheardOutcome{Seq: seq + 1, ID: fmt.Sprint(seq), Path: fmt.Sprint("/", seq), As: mcp.Rejected})
	}
	b.server.Bring(mcp.Unheard{Session: other.session, Life: "x", Seq: 32, Outcomes: outcomes})
	for n := range 32 {
		if said := other.open(filepath.Join(b.dir, fmt.Sprint("k", n)), "x"); strings.Contains(said, "isError") {
			t.Errorf("after a kill, %d: %s", n, said)
		}
	}
	if said := other.open(filepath.Join(b.dir, "too much"), "x"); !strings.Contains(said, "event stream") {
		t.Errorf("after that: %s", said)
	}
}

// SPEC T-6: what an earlier life left is told in the order of its numbers, however it was brought, so that none is heard twice by a CLI
// that comes back again.
func TestBroughtInOrderT6(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect()
	var outcomes []mcp.UnheardOutcome
	for _, seq := range []uint64{5, 3, 9, 4} {
		outcomes = append(outcomes, mcp.UnheardOutcome{Seq: seq, ID: fmt.Sprint(seq), Path: fmt.Sprint("/", seq), As: mcp.Rejected})
	}
	if !b.server.Bring(mcp.Unheard{Session: c.session, Life: "x", Seq: 9, Outcomes: outcomes}) {
		t.Fatal("not brought")
	}
	l := c.listen()
	heard := ""
	for range outcomes {
		e := l.next()
		for e.method != "ide/diffRejected" {
			e = l.next()
		}
		heard += e.id + " "
	}
	if heard != "x-3 x-4 x-5 x-9 " {
		t.Errorf("told in the order %s", heard)
	}
	l.close()
	c.listen()
	if n := b.server.Waiting(c.session); n != 0 {
		t.Errorf("%d are to be told again", n)
	}
}

// SPEC T-6: a CLI that comes back and does not say what it has read is sent a ping after its outcomes. Its answer confirms those before the ping; it hears
// the others again.
func TestPingConfirmsT6(t *testing.T) {
	journal, key := &notebook{}, []byte(strings.Repeat("k", 32))
	b := newBench(t, func(o *mcp.Options) { o.Journal, o.Agents[0].SessionKey = journal, key })
	c := b.cli()
	c.session = mcp.NewSessionID(key, 1) // of an earlier life
	tell := func(name string) {
		if err := b.registry.Reject(c.mustOpen(filepath.Join(b.dir, name), "x").ID()); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(l *listener, want ...string) (ping event) {
		t.Helper()
		for _, name := range want {
			e := l.next()
			for e.method == "ide/contextUpdate" {
				e = l.next()
			}
			if e.method != "ide/diffRejected" || !strings.Contains(e.data, name) {
				t.Fatalf("%+v, want the outcome of %s", e, name)
			}
		}
		if ping = l.next(); ping.method != "ping" {
			t.Fatalf("%+v after the outcomes, want a ping", ping)
		}
		return ping
	}
	comesBack := func(l *listener) *listener {
		l.close()
		eventually(t, "the end of the stream", func() bool { return b.server.Streams(c.session) == 0 })
		c.last = ""
		return c.listen()
	}
	answer := func(ping event) {
		if res := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, idOf(t, ping.data))); res.status != 202 {
			t.Fatalf("the answer to the ping: %d %s", res.status, res.body)
		}
	}
	tell("one")
	tell("two")
	l := c.listen()
	hears(l, "one", "two") // and answers nothing
	l = comesBack(l)
	first := hears(l, "one", "two")
	tell("three")
	hears(l, "three")
	answer(first)
	if n := b.server.Waiting(c.session); n != 1 {
		t.Errorf("%d wait after the answer to the first ping, want the third", n)
	}
	l = comesBack(l)
	answer(hears(l, "three"))
	tell("four")
	fourth := hears(l, "four")
	answer(fourth)
	if n := b.server.Waiting(c.session); n != 0 {
		t.Errorf("%d wait after the answer", n)
	}
	if u := journal.unheard(); len(u) != 0 {
		t.Errorf("the journal keeps %+v", u)
	}
	l = comesBack(l)
	tell("five")
	answer(fourth) // again: it was sent before the fifth
	hears(l, "five")
	if n := b.server.Waiting(c.session); n != 1 {
		t.Errorf("%d wait, want the fifth", n)
	}
}

// idOf is the id of a request, as JSON.
func idOf(t *testing.T, request string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(request), &m); err != nil {
		t.Fatal(err)
	}
	return string(m.ID)
}
