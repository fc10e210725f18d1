package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A companion is the other side as a script: an http.RoundTripper that works in virtual time.
type companion struct {
	mu       sync.Mutex
	calls    []string // methods that were called, and GET and DELETE
	answers  map[string]string
	status   map[string]int // by method of JSON-RPC or "GET"
	kind     string         // of answers
	streams  chan *io.PipeWriter
	lastID   []string // of each GET
	openDiff func(path string)
}

func newCompanion() *companion {
	return &companion{
		answers: map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"openDiff","inputSchema":{"type":"object"}},{"name":"closeDiff","inputSchema":{"type":"object"}}]}`,
			"openDiff":   `{"content":[]}`,
			"closeDiff":  `{"content":[{"type":"text","text":"{\"content\":\"edited\"}"}]}`,
		},
		status:  map[string]int{},
		streams: make(chan *io.PipeWriter, 16),
	}
}

func (c *companion) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method != http.MethodPost {
		c.calls = append(c.calls, r.Method)
		c.lastID = append(c.lastID, r.Header.Get("Last-Event-ID"))
		if status := c.status[r.Method]; status != 0 {
			return response(r, status, "", http.NoBody), nil
		}
		read, write := io.Pipe()
		context.AfterFunc(r.Context(), func() { write.CloseWithError(r.Context().Err()) })
		c.streams <- write
		return response(r, 200, "text/event-stream", read), nil
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments struct{ FilePath string }
		}
	}
	data, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	name := m.Method
	if m.Params.Name != "" {
		name = m.Params.Name
	}
	c.calls = append(c.calls, name)
	if status := c.status[name]; status != 0 {
		return response(r, status, "", http.NoBody), nil
	}
	if m.ID == nil || name == "" {
		return response(r, 202, "", http.NoBody), nil
	}
	if name == "openDiff" && c.openDiff != nil {
		c.openDiff(m.Params.Arguments.FilePath)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, c.answers[name])
	if strings.HasPrefix(c.answers[name], "error:") {
		body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
	}
	if c.answers[name] == "silence" {
		c.mu.Unlock()
		<-r.Context().Done()
		c.mu.Lock()
		return nil, r.Context().Err()
	}
	kind := "application/json"
	if c.kind != "" {
		kind, body = c.kind, "data: "+body+"\n\n"
	}
	return response(r, 200, kind, io.NopCloser(strings.NewReader(body))), nil
}

func response(r *http.Request, status int, kind string, body io.ReadCloser) *http.Response {
	h := http.Header{"Mcp-Session-Id": {"s1"}}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	return &http.Response{StatusCode: status, Header: h, Body: body, Request: r}
}

func (c *companion) seen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.calls, " ")
}

// join connects a client to a scripted companion, with its stream.
func join(t *testing.T, c *companion) (*Client, *io.PipeWriter) {
	t.Helper()
	cl := New(&World{Dir: "/", Environ: []string{}}, &Options{Transport: c})
	t.Cleanup(cl.Close)
	if err := cl.Join(t.Context(), Way{Host: "127.0.0.1", Port: 1, Token: "t"}); err != nil {
		t.Fatal(err)
	}
	select {
	case w := <-c.streams:
		return cl, w
	case <-time.After(time.Second):
		return cl, nil
	}
}

func say(w io.Writer, data string) { fmt.Fprintf(w, "event: message\ndata: %s\n\n", data) }

func accepted(path, content string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"ide/diffAccepted","params":{"filePath":%q,"content":%q}}`, path, content)
}

func TestOrderOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kind := range []string{"", "text/event-stream"} {
			c := newCompanion()
			c.kind = kind
			cl, _ := join(t, c)
			if got, want := c.seen(), "initialize notifications/initialized"; !strings.HasPrefix(got, want) {
				t.Errorf("%q, want first %q", got, want)
			}
			if s := cl.Status(); s.State != Connected || !cl.Diffing() {
				t.Errorf("%+v, diffing %v", s, cl.Diffing())
			}
			cl.Close()
			if got := c.seen(); strings.Contains(got, "DELETE") {
				t.Errorf("the CLI sends no DELETE: %s", got)
			}
			if s := cl.Status(); s.State != Disconnected || !strings.HasPrefix(s.Details, "IDE integration disabled.") {
				t.Errorf("%+v", s)
			}
		}
	})
}

// What happens at the start: which answers leave the CLI without a connection, without diffs, without a stream.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			change           func(*companion)
			fails, noDiffs   bool
			streams, atFirst bool
		}{
			"401":             {change: func(c *companion) { c.status["initialize"] = 401 }, fails: true},
			"strange version": {change: func(c *companion) { c.answers["initialize"] = `{"protocolVersion":"2099-01-01"}` }, fails: true},
			"no serverInfo": {change: func(c *companion) {
				delete(c.answers, "initialize")
				c.answers["initialize"] = `{"protocolVersion":"2025-06-18"}`
			}, fails: true},
			"initialized gets 200": {change: func(c *companion) { c.status["notifications/initialized"] = 200 }},
			"initialized gets 500": {change: func(c *companion) { c.status["notifications/initialized"] = 500 }, fails: true},
			"no tools":             {change: func(c *companion) { c.answers["tools/list"] = "error:" }, noDiffs: true, streams: true},
			"wrong names": {change: func(c *companion) {
				c.answers["tools/list"] = `{"tools":[{"name":"x:openDiff","inputSchema":{"type":"object"}}]}`
			}, noDiffs: true, streams: true},
			"a tool without name": {change: func(c *companion) { c.answers["tools/list"] = `{"tools":[{"inputSchema":{"type":"object"}}]}` }, noDiffs: true, streams: true},
			"405 for GET":         {change: func(c *companion) { c.status["GET"] = 405 }},
			"good":                {change: func(*companion) {}, streams: true},
		} {
			c := newCompanion()
			test.change(c)
			cl := New(&World{Dir: "/", Environ: []string{}}, &Options{Transport: c})
			err := cl.Join(t.Context(), Way{Host: "127.0.0.1", Port: 1})
			if (err != nil) != test.fails {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			if got := len(c.streams) > 0; got != test.streams {
				t.Errorf("%s: a stream: %v, want %v", name, got, test.streams)
			}
			if got := cl.Diffing(); got != (!test.fails && !test.noDiffs) {
				t.Errorf("%s: diffing: %v", name, got)
			}
			cl.Close()
		}
	})
}

// What disconnects the CLI for good, and what it bears (real CLI; facts 3.13 and 3.14).
func TestWhatDisconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			do   func(c *companion, w *io.PipeWriter)
			lost string // a part of the reason, "" for none
		}{
			"a reset":    {func(_ *companion, w *io.PipeWriter) { w.CloseWithError(errors.New("reset")) }, "SSE stream disconnected"},
			"silence":    {func(*companion, *io.PipeWriter) { time.Sleep(301 * time.Second) }, "SSE stream disconnected"},
			"no JSON":    {func(_ *companion, w *io.PipeWriter) { say(w, "{") }, "lost unexpectedly"},
			"empty data": {func(_ *companion, w *io.PipeWriter) { fmt.Fprint(w, "id: 1\ndata:\n\n") }, "lost unexpectedly"},
			"null selection": {func(_ *companion, w *io.PipeWriter) {
				say(w, contextOf(`{"path":"/a","timestamp":1,"selectedText":null}`))
			}, "selectedText"},
			"no timestamp":   {func(_ *companion, w *io.PipeWriter) { say(w, contextOf(`{"path":"/a"}`)) }, "timestamp"},
			"unknown answer": {func(_ *companion, w *io.PipeWriter) { say(w, `{"jsonrpc":"2.0","id":99,"result":{}}`) }, "unknown message ID"},
			"gone after end": {func(c *companion, w *io.PipeWriter) { c.set("GET", 404); w.Close(); time.Sleep(3 * time.Second) }, "Failed to open SSE stream"},
			"a comment": {func(_ *companion, w *io.PipeWriter) {
				time.Sleep(299 * time.Second)
				fmt.Fprint(w, ": keep-alive\n\n")
				time.Sleep(299 * time.Second)
			}, ""},
			"unknown method":  {func(_ *companion, w *io.PipeWriter) { say(w, `{"jsonrpc":"2.0","method":"ide/else","params":{}}`) }, ""},
			"a priming event": {func(_ *companion, w *io.PipeWriter) { fmt.Fprint(w, "event: prime\nid: 1\ndata:\n\n") }, ""},
			"an id alone":     {func(_ *companion, w *io.PipeWriter) { fmt.Fprint(w, "id: 1\n\n") }, ""},
			"a ping":          {func(_ *companion, w *io.PipeWriter) { say(w, `{"jsonrpc":"2.0","id":"p","method":"ping"}`) }, ""},
			"a clean end":     {func(c *companion, w *io.PipeWriter) { w.Close(); time.Sleep(1100 * time.Millisecond); <-c.streams }, ""},
			"nobody waits":    {func(_ *companion, w *io.PipeWriter) { say(w, accepted("/other", "x")) }, ""},
			"unknown fields": {func(_ *companion, w *io.PipeWriter) {
				say(w, contextOf(`{"path":"/a","timestamp":1,"diagnostics":[]}`))
			}, ""},
			"an unknown event": {func(_ *companion, w *io.PipeWriter) { fmt.Fprint(w, "event: else\ndata: x\n\n") }, ""},
		} {
			c := newCompanion()
			cl, w := join(t, c)
			say(w, contextOf(`{"path":"/first","timestamp":1}`))
			test.do(c, w)
			synctest.Wait()
			s := cl.Status()
			if (s.State == Disconnected) != (test.lost != "") || !strings.Contains(s.Details, test.lost) {
				t.Errorf("%s: %+v, want it lost for %q", name, s, test.lost)
			}
			if (cl.Context() == nil) != (test.lost != "") {
				t.Errorf("%s: context %+v", name, cl.Context())
			}
			cl.Close()
		}
	})
}

func contextOf(file string) string {
	return `{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{"workspaceState":{"openFiles":[` + file + `]}}}`
}

func (c *companion) set(method string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status[method] = status
}

// A stream that ends is opened again after a second, or after the time that the
// companion asks for, with the last id; two refusals are the end.
func TestComingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompanion()
		_, w := join(t, c)
		fmt.Fprint(w, "retry: 3000\nid: L-7\n"+"data: "+contextOf(`{"path":"/a","timestamp":1}`)+"\n\n")
		w.Close()
		began := time.Now()
		w = <-c.streams
		if took := time.Since(began); took != 3*time.Second || c.lastID[1] != "L-7" {
			t.Errorf("back after %v with %q", took, c.lastID)
		}
		c.set("GET", 503)
		w.Close()
		time.Sleep(time.Minute)
		if n := strings.Count(c.seen(), "GET"); n != 4 {
			t.Errorf("%d GETs, want 2 that worked and 2 that did not: %s", n, c.seen())
		}
	})
}

func TestDiffs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompanion()
		cl, w := join(t, c)
		for name, test := range map[string]struct {
			do   func(path string)
			want Outcome
		}{
			"accepted": {func(path string) { say(w, accepted(path, "new")) }, Outcome{true, ptr("new")}},
			"rejected": {func(path string) {
				say(w, `{"jsonrpc":"2.0","method":"ide/diffRejected","params":{"filePath":"`+path+`"}}`)
			}, Outcome{}},
			"closed": {func(path string) {
				say(w, `{"jsonrpc":"2.0","method":"ide/diffClosed","params":{"filePath":"`+path+`","content":"x"}}`)
			}, Outcome{}},
			"terminal":   {func(path string) { _ = cl.Resolve(t.Context(), path, true) }, Outcome{true, ptr("edited")}},
			"terminal 2": {func(path string) { _ = cl.Resolve(t.Context(), path, false) }, Outcome{}},
		} {
			path := "/w/" + name
			go func() {
				synctest.Wait()
				test.do(path)
			}()
			got, err := cl.OpenDiff(t.Context(), path, "proposal")
			if err != nil || got.Accepted != test.want.Accepted || (got.Content == nil) != (test.want.Content == nil) || got.Content != nil && *got.Content != *test.want.Content {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}

func ptr(s string) *string { return &s }

// The lock of the CLI: the second diff is not even asked for before the first has its outcome.
func TestOneDiffAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompanion()
		opened := make(chan string, 4)
		c.openDiff = func(path string) { opened <- path }
		cl, w := join(t, c)
		done := make(chan error, 2)
		for _, path := range []string{"/1", "/2"} {
			go func() {
				_, err := cl.OpenDiff(t.Context(), path, "x")
				done <- err
			}()
		}
		synctest.Wait()
		if n := len(opened); n != 1 {
			t.Fatalf("%d diffs open", n)
		}
		say(w, accepted(<-opened, "x"))
		synctest.Wait()
		if n := len(opened); n != 1 {
			t.Fatalf("%d diffs opened after the first", n)
		}
		say(w, accepted(<-opened, "x"))
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// A refusal, a cancelled diff (which is closed), and an answer that never comes.
func TestDiffsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompanion()
		cl, _ := join(t, c)
		c.answers["openDiff"] = `{"isError":true,"content":[{"type":"text","text":"binary"}]}`
		var refused *RefusedError
		if _, err := cl.OpenDiff(t.Context(), "/a", "x"); !errors.As(err, &refused) || refused.Reason != "binary" {
			t.Errorf("%v", err)
		}
		c.answers["openDiff"] = `{"content":[]}`
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := cl.OpenDiff(ctx, "/b", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if got := c.seen(); !strings.HasSuffix(got, "openDiff closeDiff") {
			t.Errorf("the diff that was cancelled stays open: %s", got)
		}
		c.answers["openDiff"] = "silence"
		began := time.Now()
		if _, err := cl.OpenDiff(t.Context(), "/c", "x"); err == nil {
			t.Error("an answer that never comes is one")
		}
		if took := time.Since(began); took != requestLimit {
			t.Errorf("given up after %v", took)
		}
		if got := c.seen(); !strings.HasSuffix(got, "notifications/cancelled") {
			t.Errorf("the companion is not told: %s", got)
		}
	})
}

// At its end the CLI closes the diffs that are open.
func TestCloseClosesDiffs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompanion()
		cl, _ := join(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = cl.OpenDiff(ctx, "/a", "x") }()
		synctest.Wait()
		cl.Close()
		if got := c.seen(); !strings.HasSuffix(got, "openDiff closeDiff") {
			t.Errorf("%s", got)
		}
		cancel()
		synctest.Wait()
	})
}

// Only JSON with a string "content" is the user's text (SPEC F-4).
func TestEditedContent(t *testing.T) {
	for text, want := range map[string]*string{
		`{"content":"x"}`: ptr("x"), `{"content":""}`: ptr(""), `{"finalContent":"x"}`: nil, `{"content":null}`: nil,
		`{"content":5}`: nil, `x`: nil, ``: nil, `null`: nil, `["content"]`: nil, `"content"`: nil, `{"content":"x"} y`: nil,
	} {
		got := editedContent(text)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// JSON is written as JavaScript writes it.
func TestEncode(t *testing.T) {
	for text, want := range map[string]string{
		"a<b>&\u2028\u2029": `"a<b>&` + "\u2028\u2029" + `"`, `\u2028`: `"\\u2028"`, "\\\u2028\\": `"\\` + "\u2028" + `\\"`, "\x01\"\n": `"\u0001\"\n"`,
	} {
		if got, err := encode(text); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}
