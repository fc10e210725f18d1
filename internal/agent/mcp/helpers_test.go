package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
)

const testToken = "a-token-of-the-tests-that-is-as-long-as-a-real-one"

// geminiOnly is Gemini CLI, the only agent of most tests.
func geminiOnly() []mcp.Agent {
	return []mcp.Agent{{Name: "gemini", Label: "Gemini CLI", Token: testToken, Dialect: gemini.Dialect{}}}
}

// An editor is a review.View that shows everything at once.
type editor struct {
	mu     sync.Mutex
	shown  []*review.Diff
	refuse error                             // what Show says
	hang   bool                              // Show waits for its ctx
	text   func(*review.Diff) (string, bool) // Content
	closed int
}

func (e *editor) Show(ctx context.Context, d *review.Diff) error {
	e.mu.Lock()
	hang, refuse := e.hang, e.refuse
	e.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if refuse != nil {
		return refuse
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shown = append(e.shown, d)
	return nil
}

func (e *editor) Close(*review.Diff, review.Outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed++
}

func (e *editor) Content(_ context.Context, d *review.Diff) (review.Edit, bool) {
	if e.text == nil {
		return review.Edit{}, false
	}
	content, ok := e.text(d)
	return review.Edit{Text: content}, ok
}

// A bench is a server on loopback with all that belongs to it.
type bench struct {
	t        testing.TB
	store    *state.Store
	registry *review.Registry
	editor   *editor
	server   *mcp.Server
	met      *proc.Set
	addr     string
	dir      string
}

func newBench(t testing.TB, change func(*mcp.Options)) *bench {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newBenchOn(t, l, change)
}

func newBenchOn(t testing.TB, l net.Listener, change func(*mcp.Options)) *bench {
	t.Helper()
	b := &bench{t: t, editor: &editor{}, met: new(proc.Set), addr: l.Addr().String()}
	b.dir, _ = filepath.EvalSymlinks(t.TempDir())
	b.store = state.New(nil)
	b.registry = review.New(review.Options{View: b.editor})
	o := mcp.Options{Store: b.store, Registry: b.registry, Version: "1.2.3", Agents: geminiOnly(), Meet: b.met.Add}
	if change != nil {
		change(&o)
	}
	b.store = o.Store
	b.server = mcp.New(o)
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(l) }()
	t.Cleanup(func() {
		b.registry.Shut()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = b.server.Shutdown(ctx)
		b.store.Shut()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return b
}

// file makes a file in the bench's folder.
func (b *bench) file(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// agent is a CLI at the bench: pollux's own client, which is held against the published CLI's code.
func (b *bench) agent() *agent.Agent {
	b.t.Helper()
	_, text, _ := strings.Cut(b.addr, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		b.t.Fatal(err)
	}
	return agent.Dial(b.t, port, testToken)
}

// pending is the open diff of a path.
func (b *bench) pending(path string) *review.Diff {
	b.t.Helper()
	for _, d := range slices.Backward(b.registry.Pending()) {
		if d.Proposal().Key == path {
			return d
		}
	}
	b.t.Fatalf("%s is not open", path)
	return nil
}

// A cli is for what no CLI does in good order, and for what stands in headers and lines: requests by hand, over plain
// HTTP, with streams that end when the test says so. What a CLI does is agent's.
type cli struct {
	b       *bench
	client  *http.Client
	token   string
	session string
	last    string // Last-Event-ID
	id      int
}

func (b *bench) cli() *cli {
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	b.t.Cleanup(tr.CloseIdleConnections)
	return &cli{b: b, token: testToken, client: &http.Client{Transport: tr}}
}

// connect is what a CLI does first: initialize and notifications/initialized.
func (b *bench) connect() *cli {
	b.t.Helper()
	c := b.cli()
	c.initialize("2025-06-18")
	return c
}

func (c *cli) initialize(version string) {
	c.b.t.Helper()
	res := c.post(fmt.Sprintf(`{"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"streamable-http-client","version":"0.61.0"}},"jsonrpc":"2.0","id":0}`, version))
	c.session = res.header.Get("Mcp-Session-Id")
	if res.status != 200 || c.session == "" {
		c.b.t.Fatalf("initialize: %d %s", res.status, res.body)
	}
	if res := c.post(`{"method":"notifications/initialized","jsonrpc":"2.0"}`); res.status != 202 {
		c.b.t.Fatalf("initialized: %d %s", res.status, res.body)
	}
}

type response struct {
	status int
	header http.Header
	body   string
}

func (c *cli) request(method, path, body string, headers ...string) *http.Request {
	r, err := http.NewRequest(method, "http://"+c.b.addr+path, strings.NewReader(body))
	if err != nil {
		c.b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (c *cli) do(r *http.Request) response {
	c.b.t.Helper()
	res, err := c.client.Do(r)
	if err != nil {
		c.b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.b.t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, string(body)}
}

func (c *cli) post(body string, headers ...string) response {
	c.b.t.Helper()
	return c.do(c.request("POST", "/mcp", body, headers...))
}

// call calls a tool and returns the answer's body.
func (c *cli) call(tool string, args map[string]any) string {
	c.b.t.Helper()
	c.id++
	params, _ := json.Marshal(map[string]any{"name": tool, "arguments": args})
	res := c.post(fmt.Sprintf(`{"method":"tools/call","params":%s,"jsonrpc":"2.0","id":%d}`, params, c.id))
	if res.status != 200 {
		c.b.t.Fatalf("%s: %d %s", tool, res.status, res.body)
	}
	return res.body
}

func (c *cli) open(path, content string) string {
	c.b.t.Helper()
	return c.call("openDiff", map[string]any{"filePath": path, "newContent": content})
}

func (c *cli) closeDiff(path string) string {
	c.b.t.Helper()
	return c.call("closeDiff", map[string]any{"filePath": path, "suppressNotification": true})
}

// mustOpen opens a diff and returns it.
func (c *cli) mustOpen(path, content string) *review.Diff {
	c.b.t.Helper()
	if got := c.open(path, content); !strings.Contains(got, `"result":{"content":[]}`) {
		c.b.t.Fatalf("openDiff: %s", got)
	}
	return c.b.pending(path)
}

// An event is one message of a stream.
type event struct {
	id, method, data string
}

// A listener is a stream of a cli's.
type listener struct {
	c      *cli
	body   io.ReadCloser
	events chan event
	retry  chan string // retry lines, but the greeting's
}

// listen opens the stream and takes the first context.
func (c *cli) listen(headers ...string) *listener {
	c.b.t.Helper()
	if c.last != "" {
		headers = append(headers, "Last-Event-ID", c.last)
	}
	r := c.request("GET", "/mcp", "", headers...)
	r.Body = nil
	res, err := c.client.Do(r)
	if err != nil {
		c.b.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		c.b.t.Fatalf("GET: %s", res.Status)
	}
	l := &listener{c: c, body: res.Body, events: make(chan event, 4096), retry: make(chan string, 16)}
	go l.read()
	c.b.t.Cleanup(func() { res.Body.Close() })
	if e := l.next(); e.method != "ide/contextUpdate" {
		c.b.t.Fatalf("first event %+v, want a context", e)
	}
	return l
}

func (l *listener) read() {
	defer close(l.events)
	lines := bufio.NewReaderSize(l.body, 1<<16)
	var e event
	var data bytes.Buffer
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		switch field, value, _ := strings.Cut(line, ": "); field {
		case "id":
			e.id = value
		case "data":
			data.WriteString(value)
		case "retry":
			select {
			case l.retry <- value:
			default:
			}
		case "":
			if data.Len() > 0 {
				var m struct{ Method string }
				_ = json.Unmarshal(data.Bytes(), &m)
				e.method, e.data = m.Method, data.String()
				l.events <- e
			}
			e = event{}
			data.Reset()
		}
	}
}

// next is the next message; it fails when none comes.
func (l *listener) next() event {
	l.c.b.t.Helper()
	select {
	case e, ok := <-l.events:
		if !ok {
			l.c.b.t.Fatal("the stream has ended")
		}
		if e.id != "" {
			l.c.last = e.id
		}
		return e
	case <-time.After(patience):
		l.c.b.t.Fatal("no event")
	}
	return event{}
}

// silent fails when a message comes within d.
func (l *listener) silent(d time.Duration) {
	l.c.b.t.Helper()
	select {
	case e, ok := <-l.events:
		if ok {
			l.c.b.t.Fatalf("unexpected event %+v", e)
		}
		l.c.b.t.Fatal("the stream has ended")
	case <-time.After(d):
	}
}

// ended waits for the end of the stream.
func (l *listener) ended() {
	l.c.b.t.Helper()
	for {
		select {
		case e, ok := <-l.events:
			if !ok {
				return
			}
			l.c.b.t.Fatalf("unexpected event %+v", e)
		case <-time.After(patience):
			l.c.b.t.Fatal("the stream goes on")
		}
	}
}

func (l *listener) close() { l.body.Close() }

// patience is for what a loaded machine may take.
const patience = 30 * time.Second

// eventually polls until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

// snapshotWithCursorAt is what a user sees after the nth move of the cursor.
func snapshotWithCursorAt(n int) *state.Snapshot {
	path := filepath.Join(string(filepath.Separator), "home", "somebody", "project", "main.go")
	return &state.Snapshot{
		Files:  []state.File{{Path: path, Focused: time.UnixMilli(1_700_000_000_000)}},
		Active: path, Cursor: &state.Position{Line: n, Character: 5},
	}
}

// A notebook is a mcp.Journal that keeps what was decided and not heard, in memory.
type notebook struct {
	mu      sync.Mutex
	owners  map[string]string // of diffs
	keys    map[string]string
	decided []noted
}

type noted struct {
	session, life string
	mcp.UnheardOutcome
}

func (n *notebook) Opened(session string, d *review.Diff) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.owners == nil {
		n.owners, n.keys = map[string]string{}, map[string]string{}
	}
	n.owners[d.ID()], n.keys[d.ID()] = session, d.Proposal().Key
}

func (n *notebook) Decided(id string, content *string, as, life string, seq uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := mcp.UnheardOutcome{Seq: seq, ID: id, Path: n.keys[id], As: as}
	if content != nil {
		o.Content = *content
	}
	n.decided = append(n.decided, noted{n.owners[id], life, o})
}

func (n *notebook) drop(which func(noted) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.decided = slices.DeleteFunc(n.decided, which)
}

func (n *notebook) Heard(session string, seqs ...uint64) {
	n.drop(func(o noted) bool { return o.session == session && slices.Contains(seqs, o.Seq) })
}

func (n *notebook) Dropped(session, key string) {
	n.drop(func(o noted) bool { return o.session == session && o.Path == key })
}
func (n *notebook) Forget(id string) { n.drop(func(o noted) bool { return o.ID == id }) }
func (n *notebook) Ended(session string, _ bool) {
	n.drop(func(o noted) bool { return o.session == session })
}

// unheard is what a companion would bring to the next server.
func (n *notebook) unheard() (all []mcp.Unheard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.decided {
		i := slices.IndexFunc(all, func(u mcp.Unheard) bool { return u.Session == o.session })
		if i < 0 {
			i, all = len(all), append(all, mcp.Unheard{Session: o.session, Life: o.life})
		}
		all[i].Outcomes = append(all[i].Outcomes, o.UnheardOutcome)
	}
	return all
}
