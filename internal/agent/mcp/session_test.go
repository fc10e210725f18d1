package mcp_test

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/pace"
)

// T-1, T-6, T-7, F-2, F-3, F-4: one CLI from its first request to its last.
func TestOneCLI(t *testing.T) {
	b := newBench(t, nil)
	path := b.file("a.txt", "old\n")
	b.store.Report("w", state.Report{Active: path, Cursor: &state.Position{Line: 3, Character: 4}, Open: []string{path}, Front: true})
	c := b.agent()
	if tools := c.Tools(); !slices.Equal(tools, []string{"openDiff", "closeDiff"}) {
		t.Errorf("tools %q", tools)
	}
	c.Context("the cursor", func(files []agent.File) bool {
		return len(files) == 1 && files[0].Path == path && files[0].IsActive && files[0].Cursor != nil && *files[0].Cursor == struct{ Line, Character int }{4, 5}
	})
	c.OpenDiff(path, "new\n")
	if err := b.registry.Accept(b.pending(path).ID(), review.Seen{}, nil); err != nil {
		t.Fatal(err)
	}
	if o := c.Outcome(); o != (agent.Outcome{Method: "ide/diffAccepted", FilePath: path, Content: "new\n"}) {
		t.Errorf("outcome: %+v", o)
	}
	c.NotOpen(path)
	c.OpenDiff(path, "newer\n")
	if got := c.CloseDiff(path); got != `{"finalContent":"newer\n"}` {
		t.Errorf("closeDiff: %s", got)
	}
	b.nothingButThis(c) // no outcome follows a closeDiff
}

// nothingButThis checks that no outcome waits: the next one that a CLI hears is of a diff that it opens now.
func (b *bench) nothingButThis(c *agent.Agent) {
	b.t.Helper()
	path := filepath.Join(b.dir, "the next one")
	c.OpenDiff(path, "x")
	if err := b.registry.Reject(b.pending(path).ID()); err != nil {
		b.t.Fatal(err)
	}
	if o := c.Outcome(); o.Method != "ide/diffRejected" || o.FilePath != path {
		b.t.Errorf("an outcome before that of the next diff: %+v", o)
	}
}

// T-6: an outcome waits for a stream, and is neither lost nor sent twice.
func TestOutcomesSurviveStreams(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect()
	l := c.listen()
	l.close()
	d := c.mustOpen(b.dir+"/a", "1")
	if err := b.registry.Reject(d.ID()); err != nil {
		t.Fatal(err)
	}
	l = c.listen()
	first := l.next()
	if first.method != "ide/diffRejected" || first.id == "" {
		t.Fatalf("after reconnecting: %+v", first)
	}
	l.close()
	l = c.listen() // confirms it by Last-Event-ID
	l.silent(50 * time.Millisecond)
	l.close()

	d = c.mustOpen(b.dir+"/b", "2")
	read := c.last
	l = c.listen()
	_ = b.registry.Reject(d.ID())
	if e := l.next(); e.method != "ide/diffRejected" || !strings.Contains(e.data, "/b") {
		t.Fatalf("second outcome: %+v", e)
	}
	l.close()
	c.last = read // the client has not read it
	l = c.listen()
	if e := l.next(); e.method != "ide/diffRejected" || !strings.Contains(e.data, "/b") {
		t.Fatalf("replayed: %+v", e)
	}
}

// T-3, F-7: two CLIs at once each get their own answers and outcomes.
func TestTwoCLIs(t *testing.T) {
	b := newBench(t, nil)
	one, two := b.agent(), b.agent()
	path := b.dir + "/same.txt"
	one.OpenDiff(path, "1")
	d1 := b.pending(path)
	two.OpenDiff(path, "2")
	d2 := b.pending(path)
	if d1.Owner().Label() != "Gemini CLI #1" || d2.Owner().Label() != "Gemini CLI #2" {
		t.Errorf("labels %q, %q", d1.Owner().Label(), d2.Owner().Label())
	}
	_ = b.registry.Accept(d2.ID(), d2.Now().Seen, nil)
	if o := two.Outcome(); o.Method != "ide/diffAccepted" || o.Content != "2" {
		t.Errorf("second: %+v", o)
	}
	if got := one.CloseDiff(path); got != `{"finalContent":"1"}` {
		t.Errorf("first: %s", got)
	}
	b.nothingButThis(one)
	infos := b.server.Sessions()
	if len(infos) != 2 || infos[1].ID != 2 || infos[0].Client != "streamable-http-client" || infos[0].Version != "0.61.0" {
		t.Errorf("sessions %+v", infos)
	}
}

// L-3: after a restart with the same key a session id is adopted, with its number,
// and outcomes of its diffs reach it; ids of other keys are 404.
func TestAdoption(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	withKey := func(o *mcp.Options) { o.Agents[0].SessionKey = key }
	before := newBench(t, withKey)
	before.connect()
	c := before.connect()
	after := newBench(t, withKey)
	c.b = after
	c.last = "OLDLIFE1-7" // of the life before: it says nothing here
	l := c.listen()
	if infos := after.server.Sessions(); len(infos) != 1 || infos[0].Label != "Gemini CLI #2" {
		t.Fatalf("sessions %+v", infos)
	}
	owner, ok := after.server.Adopt(c.session)
	if !ok || mcp.SessionID(owner) != c.session {
		t.Fatal("the session's own id is not adopted")
	}
	if _, err := after.registry.Open(t.Context(), owner, review.Proposal{Key: "/as sent", Path: "/as sent", New: "x"}, nil); err != nil {
		t.Fatal(err)
	}
	_ = after.registry.Reject(after.registry.Pending()[0].ID())
	if e := l.next(); e.method != "ide/diffRejected" || !strings.Contains(e.data, `"/as sent"`) {
		t.Errorf("outcome of a diff from before: %+v", e)
	}
	foreign := newBench(t, nil)
	c.b = foreign
	if res := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); res.status != 404 {
		t.Errorf("foreign id: %d", res.status)
	}
}

// T-6, L-1, L-3: what a CLI had not heard when the server was stopped in good
// order, its stream being down, it hears from the next one, once and in order.
func TestUnheard(t *testing.T) {
	book := &notebook{}
	withKey := func(o *mcp.Options) { o.Agents[0].SessionKey, o.Journal = []byte(strings.Repeat("k", 32)), book }
	before := newBench(t, withKey)
	c, listening := before.connect(), before.connect()
	l, whole := c.listen(), listening.listen()
	if err := before.registry.Accept(c.mustOpen(before.dir+"/heard", "1").ID(), review.Seen{}, nil); err != nil {
		t.Fatal(err)
	}
	l.next()
	l.close()
	eventually(t, "the stream is gone", func() bool { return before.server.Streams(c.session) == 0 })
	if err := before.registry.Accept(c.mustOpen(before.dir+"/taken", "\ufeff2\r\n").ID(), review.Seen{}, nil); err != nil {
		t.Fatal(err)
	}
	c.mustOpen(before.dir+"/open", "3")
	listening.mustOpen(before.dir+"/open", "4")
	before.registry.Shut()
	_ = before.server.Shutdown(t.Context())
	if e := whole.next(); e.method != "ide/diffRejected" {
		t.Errorf("a CLI that listens hears %+v", e)
	}
	unheard := book.unheard()
	if len(unheard) != 1 || unheard[0].Session != c.session {
		t.Fatalf("unheard: %+v", unheard)
	}

	after := newBench(t, withKey)
	if !after.server.Bring(unheard[0]) || newBench(t, nil).server.Bring(unheard[0]) {
		t.Error("a session is brought to its own companion, and to no other")
	}
	c.b = after
	l = c.listen()
	if e := l.next(); e.method != "ide/diffAccepted" || !strings.Contains(e.data, `/taken`) || !strings.Contains(e.data, "\ufeff2\\r\\n") {
		t.Errorf("first: %+v", e)
	}
	if e := l.next(); e.method != "ide/diffRejected" || !strings.Contains(e.data, `/open`) {
		t.Errorf("second: %+v", e)
	}
	l.silent(50 * time.Millisecond)
	l.close()
	c.listen().silent(50 * time.Millisecond)
	c.mustOpen(after.dir+"/next", "5") // and the numbers go on
	l = c.listen()
	_ = after.registry.Reject(after.registry.Pending()[0].ID())
	if e := l.next(); !strings.HasSuffix(e.id, "-4") {
		t.Errorf("the next one: %+v", e)
	}
}

// T-3, F-9: a session without stream and requests ends, with its diffs; its
// id is welcome again, a deleted one's is not.
func TestExpiry(t *testing.T) {
	b := newBench(t, func(o *mcp.Options) { o.Grace = 50 * time.Millisecond })
	c := b.connect()
	l := c.listen()
	c.mustOpen(b.dir+"/a", "x")
	b.connect() // without a stream
	eventually(t, "the other session ends", func() bool { return len(b.server.Sessions()) == 1 })
	if len(b.registry.Pending()) != 1 {
		t.Fatal("a session with a stream has ended")
	}
	l.close()
	eventually(t, "the session ends", func() bool { return len(b.server.Sessions()) == 0 })
	eventually(t, "its diffs go", func() bool { return len(b.registry.Pending()) == 0 })
	if res := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); res.status != 200 {
		t.Errorf("back after a long sleep: %d", res.status)
	}
	c.do(c.request("DELETE", "/mcp", ""))
	if res := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); res.status != 404 {
		t.Errorf("after DELETE: %d", res.status)
	}
}

// T-3: no timer wakes for a session with a stream, and its grace still begins when the stream ends, or its last request.
func TestGraceOfAnIdleSession(t *testing.T) {
	b := newBench(t, func(o *mcp.Options) { o.Grace = 50 * time.Millisecond })
	streams, asks := b.connect(), b.cli()
	l := streams.listen()
	eventually(t, "no timer runs", func() bool { return b.server.Untimed(streams.session) })
	_ = streams.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if !b.server.Untimed(streams.session) {
		t.Error("a request beside a stream starts the timer")
	}
	l.close()
	eventually(t, "it ends", func() bool { return len(b.server.Sessions()) == 0 })

	asks.initialize("2025-06-18")
	body, end := io.Pipe()
	r := asks.request("POST", "/mcp", "")
	r.Body, r.ContentLength = body, -1
	answered := make(chan struct{})
	go func() { defer close(answered); asks.do(r) }()
	eventually(t, "no timer runs", func() bool { return b.server.Untimed(asks.session) })
	_, _ = io.WriteString(end, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	_ = end.Close()
	<-answered
	eventually(t, "it ends", func() bool { return len(b.server.Sessions()) == 0 })
}

// L-1: Shutdown delivers the outcomes of open diffs, ends the streams with
// retry, and is done within a second although CLIs hold their streams and strangers
// their half-open connections.
func TestShutdown(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect()
	l := c.listen()
	c.mustOpen(b.dir+"/a", "x")
	half, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	_, _ = half.Write([]byte("POST /mcp HTTP/1.1\r\n"))
	<-l.retry // the one of the greeting
	watch := pace.Start(t)
	b.registry.Shut()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if took := watch.Took(); took > pace.Slack*900*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if e := l.next(); e.method != "ide/diffRejected" {
		t.Errorf("outcome %+v", e)
	}
	l.ended()
	if retry := <-l.retry; retry != "3000" {
		t.Errorf("retry %q", retry)
	}
}

// T-3, T-6: a CLI that does not read its stream delays nobody; when it is cut
// off and comes back, it gets what it missed, and of contexts only the newest.
func TestSlowSession(t *testing.T) {
	b := newBench(t, nil)
	slow, quick := b.connect(), b.connect()
	conn := slow.rawStream()
	defer conn.Close()
	l := quick.listen()
	big := strings.Repeat("x", 8<<20)
	d := slow.mustOpen(b.dir+"/big", big)
	_ = b.registry.Accept(d.ID(), d.Now().Seen, nil) // more than the socket takes
	for i := range 200 {
		b.server.Publish(&state.Snapshot{Active: "/f", Files: []state.File{{Path: "/f"}}, Cursor: &state.Position{Line: i}})
	}
	watch := pace.Start(t)
	quick.mustOpen(b.dir+"/b", "y")
	for !strings.Contains(l.next().data, `"line":200,`) { // those before it may be left out
	}
	if took := watch.Took(); took > pace.Slack*2*time.Second {
		t.Errorf("the quick CLI waited %v", took)
	}
	conn.Close()
	back := slow.listen()
	e := back.next()
	if e.method != "ide/diffAccepted" || len(e.data) < len(big) {
		t.Errorf("missed outcome: %.80s", e.data)
	}
	back.silent(50 * time.Millisecond)
}

// T-6: so it does when it is back before the server has seen the end of its old stream.
func TestStreamEndsLate(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect()
	old := c.rawStream()
	d := c.mustOpen(b.dir+"/a", "x")
	_ = b.registry.Accept(d.ID(), d.Now().Seen, nil)
	back := c.listen()
	old.Close()
	if e := back.next(); e.method != "ide/diffAccepted" {
		t.Errorf("%+v", e)
	}
}

// rawStream opens a stream that nobody reads.
func (c *cli) rawStream() net.Conn {
	c.b.t.Helper()
	conn, err := net.Dial("tcp", c.b.addr)
	if err != nil {
		c.b.t.Fatal(err)
	}
	r := c.request("GET", "/mcp", "")
	if err := r.Write(conn); err != nil {
		c.b.t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 16)); err != nil {
		c.b.t.Fatal(err)
	}
	return conn
}

// T-5: beats come at least every minute, and together: an idle companion wakes twice a minute.
func TestNextBeat(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		now := time.Unix(random.Int64N(1<<32), random.Int64N(1<<30))
		at := now.Add(mcp.NextBeat(now, 30*time.Second))
		minute := now.Add(mcp.NextBeat(now, time.Minute))
		if wait := at.Sub(now); wait < 3*time.Second || wait > 33*time.Second || at.Second()%30 != 0 || at.Nanosecond() != 0 || minute.Second() != 0 || minute.Nanosecond() != 0 {
			t.Errorf("at %v the next is %v, that of the minute %v", now, at, minute)
		}
	}
}

// T-5: keep-alives come also while something else does, and their timer ends with the last session.
func TestKeepAlive(t *testing.T) {
	b := newBench(t, func(o *mcp.Options) { o.KeepAlive = 20 * time.Millisecond; o.Grace = 10 * time.Millisecond })
	c := b.connect()
	conn := c.rawStream()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	for beats := 0; beats < 3; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ":\n" {
			beats++
		}
	}
	conn.Close()
	eventually(t, "the timer stops", func() bool {
		return !b.server.Beats()
	})
}

// the fifth stream of a session ends the oldest, cleanly.
func TestStreamsOfASession(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect()
	first := c.listen()
	for range mcp.MaxStreams {
		c.listen()
	}
	first.ended()
}

// T-1: a call that the CLI cancels, or whose connection it drops, opens no diff.
func TestCancelledCall(t *testing.T) {
	b := newBench(t, nil)
	b.editor.hang = true
	c := b.agent()
	path := b.dir + "/a"
	c.Cancelled(path, "x", func() {
		eventually(t, "it is being shown", func() bool { return len(b.registry.Pending()) == 1 })
	})
	eventually(t, "it is gone", func() bool { return len(b.registry.Pending()) == 0 })
	c.NotOpen(path)

	// And by the message alone, whose call is answered then.
	raw := b.connect()
	answer := make(chan string, 1)
	go func() { answer <- raw.open(path, "x") }()
	eventually(t, "it is being shown", func() bool { return len(b.registry.Pending()) == 1 })
	if res := b.cliOf(raw).post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); res.status != 202 {
		t.Errorf("cancelled: %d", res.status)
	}
	if got := <-answer; !strings.Contains(got, `"isError":true`) || len(b.registry.Pending()) != 0 {
		t.Errorf("answer %s", got)
	}
}

// cliOf is another connection of the same session.
func (b *bench) cliOf(c *cli) *cli {
	other := b.cli()
	other.session = c.session
	return other
}

// F-2: ReadOld refuses everything that a diff cannot show, without waiting for it.
func TestOldFiles(t *testing.T) {
	b := newBench(t, nil)
	c := b.agent()
	big := b.file("big", "")
	if err := os.Truncate(big, mcp.MaxOld+1); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		b.file("latin1", "\xe9"): "not text in UTF-8",
		big:                      "larger than 16 MiB",
	} {
		if got := c.Refused(path, "x"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	crlf := b.file("crlf", "\ufeffa\r\n")
	c.OpenDiff(crlf, "x")
	if p := b.pending(crlf).Proposal(); p.Old != "\ufeffa\r\n" || p.IsNew {
		t.Errorf("old text %q", p.Old)
	}
}

// F-4, F-10: the user accepts while the CLI has no stream, and the CLI then
// decides in its terminal: it gets the user's text as the answer, and nothing after it.
func TestCloseAfterUnheardAcceptance(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect()
	path := b.dir + "/a"
	d := c.mustOpen(path, "proposed")
	edited := "edited by the user"
	if err := b.registry.Accept(d.ID(), d.Now().Seen, &edited); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the outcome waits", func() bool {
		return b.server.Waiting(c.session) == 1
	})
	if got := c.closeDiff(path); !strings.Contains(got, `{\"content\":\"edited by the user\"}`) {
		t.Errorf("closeDiff: %s", got)
	}
	sess := b.server.Session(c.session)
	sess.Settled(d, review.Outcome{Kind: review.Accepted}) // late, after the closeDiff
	l := c.listen()
	l.silent(50 * time.Millisecond)
	next := c.mustOpen(path, "next")
	_ = b.registry.Reject(next.ID())
	if e := l.next(); e.method != "ide/diffRejected" {
		t.Errorf("the next diff's outcome: %+v", e)
	}
}

// SPEC L-1: a CLI whose stream comes only while the server ends hears its outcome.
func TestShutdownWaitsForTheStream(t *testing.T) {
	b := newBench(t, func(o *mcp.Options) { o.Late = patience })
	c := b.connect()
	d := c.mustOpen(b.file("f", "old\n"), "new\n")
	if err := b.registry.Reject(d.ID()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.server.Shutdown(t.Context()) }()
	eventually(t, "the server ends", b.server.Closing)
	l := c.listen()
	for e := l.next(); e.method != "ide/diffRejected"; e = l.next() {
		if e.method != "ide/contextUpdate" {
			t.Fatalf("%+v", e)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// SPEC L-3: a session that has a next life is never said to be unknown, also while this one ends: a client would begin anew.
func TestShutdownKnowsSessions(t *testing.T) {
	b := newBench(t, nil)
	c := b.connect()
	b.server.EndSessions()
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if res := c.do(c.request(method, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)); res.status != 503 || res.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v", method, res.status, res.header)
		}
	}
}
