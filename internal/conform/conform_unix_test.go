//go:build unix

package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// A hand plays the user on a companion of this process.
type hand struct {
	c *clienttest.Companion
	// change lets a test spoil what the user does: it returns true when it did the line itself.
	change func(h *hand, line string) bool
}

func (h *hand) Do(_ context.Context, line string) error {
	if h.change != nil && h.change(h, line) {
		return nil
	}
	var do struct {
		Reset, Reject, Touch, Close bool
		Report                      *state.Report
		Accept, Trust               json.RawMessage
		Edit, Policy                *string
	}
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	switch {
	case do.Reset:
		for _, d := range h.c.Registry.Pending() {
			_ = h.c.Registry.Reject(d.ID())
		}
		h.c.Store.Leave("window")
		h.c.Registry.SetRule(review.Rule{Mode: review.Ask})
		time.Sleep(80 * time.Millisecond) // past the debounce: what was open is told before the next session begins
		return nil
	case do.Report != nil:
		h.c.Store.Report("window", *do.Report)
		return nil
	case do.Touch:
		h.c.Store.Touch()
		return nil
	case do.Policy != nil:
		h.c.Registry.SetRule(review.Rule{Mode: review.Mode(*do.Policy)})
		return nil
	}
	pending := h.c.Registry.Pending()
	if len(pending) == 0 {
		if do.Reject || do.Accept != nil || do.Edit != nil || do.Close {
			return errors.New("no diff is open")
		}
		return ErrUnsupported
	}
	id := pending[0].ID()
	switch {
	case do.Reject, do.Close:
		return h.c.Registry.Reject(id)
	case do.Edit != nil:
		return h.c.Registry.Edit(id, *do.Edit)
	case do.Accept != nil:
		var content *string
		if err := json.Unmarshal(do.Accept, &content); err != nil {
			return err
		}
		return h.c.Registry.Accept(id, content)
	}
	return ErrUnsupported
}

func newBase(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func start(t *testing.T, o clienttest.Options) (*clienttest.Companion, Target) {
	t.Helper()
	o.Base = newBase(t)
	c, err := clienttest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c, Target{Addr: c.Addr, Token: c.Token, Dir: c.Root, File: c.File, Driver: &hand{c: c}}
}

// quick makes the slow checks quick.
func quick(o *gemini.Options) {
	o.KeepAlive, o.Grace = 700*time.Millisecond, 300*time.Millisecond
}

// The companion itself passes everything. (With a driver: e2e, on the page.)
func TestGood(t *testing.T) {
	t.Parallel()
	_, target := start(t, clienttest.Options{Token: strings.Repeat("Zx-9", 11), Change: quick})
	target.Driver = nil
	target.Silence, target.Grace = 10*time.Second, time.Second
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally, names := map[Result]int{}, map[string]bool{}
	for _, c := range all {
		tally[c.Result]++
		if c.Result == Fail {
			t.Errorf("%s: %s\n%s", c.Name, c.About, c.Evidence)
		}
		if names[c.Name] || c.Name == "" || c.About == "" || c.Number == "" || c.Result == Skip && c.Evidence == "" {
			t.Errorf("twice, or not whole: %+v", c)
		}
		names[c.Name] = true
	}
	t.Logf("%d checks: %v", len(all), tally)
	if tally[Pass] < 150 {
		t.Errorf("only %v", tally)
	}
	if left, _ := os.ReadDir(target.Dir); len(left) > 0 {
		t.Errorf("left in the workspace: %v", left)
	}
}

// Without a driver, without a view, without anybody there.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	c, target := start(t, clienttest.Options{Token: strings.Repeat("Zx-9", 11)})
	target.Driver = nil
	c.Registry.SetRule(review.Rule{Mode: review.Terminal})
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if (c.Result == Fail) != (c.Name == showsDiff) {
			t.Errorf("%+v", c)
		}
	}
	if _, err := Run(t.Context(), Target{Addr: "127.0.0.1:1", Dir: target.Dir}, nil); err == nil {
		t.Error("nobody is tried")
	}
}

// A fault spoils a good companion in the manner of one that exists.
type fault struct {
	caught string // the check that must fail, or the beginning of its name
	// server and file change the companion, user its user, answer what it says; the rest passes.
	server func(*gemini.Options)
	file   func(path string)
	user   func(h *hand, line string) bool
	proxy  func(*proxy)
	target func(*Target)
}

// A proxy stands before the companion.
type proxy struct {
	request func(r *http.Request, body []byte) (answer *http.Response) // nil passes it on
	body    func(r *http.Request, asked, answered []byte) []byte
	event   func(r *http.Request, data string) bool // false swallows it
	address string                                  // to listen at

	mu     sync.Mutex
	latest string // session
	gets   map[string]int
}

// SPEC and facts: every class of fault that was found in the companions that exist is caught.
func TestSeededFaults(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"one server object for all sessions": {caught: "T-3/answers of two sessions", proxy: func(p *proxy) {
			p.request = func(r *http.Request, body []byte) *http.Response {
				if bytes.Contains(body, []byte("closeDiff")) && !p.isLatest(r) {
					<-r.Context().Done() // the answer goes to the other session
				}
				return nil
			}
		}},
		"not reachable from a container": {caught: "T-8a/", target: func(t *Target) { t.With = []string{"extraHost"} }},
		"dead sessions are kept":         {caught: "T-3/dead sessions end", server: func(o *gemini.Options) { o.Grace = time.Hour }, target: func(t *Target) { t.Grace = 400 * time.Millisecond }},
		"what is missed is lost": {caught: "T-6", proxy: func(p *proxy) {
			p.event = func(r *http.Request, data string) bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.gets[r.Header.Get("Mcp-Session-Id")] < 2 || strings.Contains(data, "contextUpdate")
			}
		}},
		"a settings page leaves the file active": {caught: "C-6/no file has the focus", user: func(_ *hand, line string) bool { return strings.Contains(line, `"Active":""`) }},
		"no context": {caught: "T-7/first context", proxy: func(p *proxy) {
			p.event = func(_ *http.Request, data string) bool { return !strings.Contains(data, "contextUpdate") }
		}},
		"no keep-alive":             {caught: "T-5/keep-alive", server: func(o *gemini.Options) { o.KeepAlive = time.Hour }, target: func(t *Target) { t.Silence = time.Second }},
		"a token that all can read": {caught: "D-4/mode", file: func(path string) { _ = os.Chmod(path, 0o644) }},
		"the file is saved on accept": {caught: "F-8/does not write", user: func(h *hand, line string) bool {
			if strings.Contains(line, "accept") {
				for _, d := range h.c.Registry.Pending() {
					_ = os.WriteFile(d.Proposal().Path, []byte(d.Proposal().New), 0o600)
				}
			}
			return false
		}},
		"closeDiff answers with the raw text": {caught: "F-4/text that is JSON", proxy: func(p *proxy) { p.body = rawText }},
		"closeDiff does not answer with JSON": {caught: "F-4/unedited", proxy: func(p *proxy) { p.body = rawText }},
		"no authentication": {caught: "A-2a/", proxy: func(p *proxy) {
			p.request = func(r *http.Request, _ []byte) *http.Response {
				r.Header.Set("Authorization", "Bearer "+clienttest.DefaultToken)
				return nil
			}
		}},
		"large answers are cut": {caught: "F-4/large text", proxy: func(p *proxy) {
			p.body = func(_ *http.Request, _, answered []byte) []byte { return answered[:min(len(answered), 64<<10)] }
		}},
		"all interfaces": {caught: "T-2/loopback only", proxy: func(p *proxy) { p.address = "0.0.0.0:0" }},
		"openDiff writes beside the file": {caught: "F-2/writes nothing", proxy: func(p *proxy) {
			p.request = func(_ *http.Request, body []byte) *http.Response {
				var m struct {
					Params struct{ Arguments struct{ FilePath string } }
				}
				if bytes.Contains(body, []byte("openDiff")) && json.Unmarshal(body, &m) == nil {
					_ = os.WriteFile(m.Params.Arguments.FilePath+" [New]", nil, 0o600)
				}
				return nil
			}
		}},
		"openDiff blocks until it is decided": {caught: "F-2/answers at once", proxy: func(p *proxy) {
			p.request = func(r *http.Request, body []byte) *http.Response {
				if bytes.Contains(body, []byte("openDiff")) {
					<-r.Context().Done()
				}
				return nil
			}
		}},
		"no check of Host and Origin": {caught: "A-3", proxy: func(p *proxy) {
			p.request = func(r *http.Request, _ []byte) *http.Response {
				r.Header.Del("Origin")
				r.Host = "" // the proxy's own name for it
				return nil
			}
		}},
		"a closed tab says nothing":    {caught: "F-3/closed view", user: func(_ *hand, line string) bool { return strings.Contains(line, "close") }},
		"initialized gets 200":         {caught: "T-5/initialized gets 202", proxy: func(p *proxy) { p.request = okForInitialized }},
		"every POST becomes a session": {caught: "T-1/no session without initialize", proxy: func(p *proxy) { p.request = endlessForAll }},
		"tools under other names": {caught: "F-1/both tools", proxy: func(p *proxy) {
			p.body = func(_ *http.Request, _, answered []byte) []byte {
				return bytes.ReplaceAll(answered, []byte(`"name":"openDiff"`), []byte(`"name":"sublime:openDiff"`))
			}
		}},
		"a UUID for a token": {caught: "A-1/token", server: func(o *gemini.Options) { o.Token = uuid }, target: func(t *Target) { t.Token = uuid }, file: edited("authToken", uuid)},
		"no ideInfo":         {caught: "D-3/ideInfo", file: edited("ideInfo", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.try(t)
		})
	}
}

const uuid = "123e4567-e89b-12d3-a456-426614174000"

func (f *fault) try(t *testing.T) {
	c, target := start(t, clienttest.Options{Change: f.server})
	target.Driver = &hand{c: c, change: f.user}
	target.Wait = 1500 * time.Millisecond
	if f.proxy != nil {
		p := &proxy{gets: map[string]int{}, address: "127.0.0.1:0"}
		f.proxy(p)
		target.Addr = p.start(t, c.Addr)
	}
	if f.file != nil {
		f.file(c.File)
	}
	if f.target != nil {
		f.target(&target)
	}
	target.Only = strings.TrimRight(f.caught, "/")
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if strings.HasPrefix(c.Name, f.caught) && c.Result == Fail {
			if c.Evidence == "" {
				t.Errorf("caught without evidence: %+v", c)
			}
			return
		}
		if c.Result == Skip && c.Name == f.caught && strings.Contains(c.Evidence, "no other address") {
			t.Skip(c.Evidence)
		}
	}
	t.Errorf("%s was not caught: %+v", f.caught, all)
}

func edited(name string, value any) func(string) {
	return func(path string) {
		data, _ := os.ReadFile(path)
		var m map[string]any
		_ = json.Unmarshal(data, &m)
		m[name] = value
		if value == nil {
			delete(m, name)
		}
		data, _ = json.Marshal(m)
		_ = os.WriteFile(path, data, 0o600)
	}
}

// rawText puts the text itself where JSON belongs.
func rawText(_ *http.Request, asked, answered []byte) []byte {
	if !bytes.Contains(asked, []byte("closeDiff")) {
		return answered
	}
	var m struct {
		JSONRPC string `json:"jsonrpc"`
		ID      any    `json:"id"`
		Result  struct {
			Content []map[string]string `json:"content"`
		} `json:"result"`
	}
	if json.Unmarshal(answered, &m) != nil || len(m.Result.Content) == 0 {
		return answered
	}
	var text struct{ FinalContent string }
	_ = json.Unmarshal([]byte(m.Result.Content[0]["text"]), &text)
	m.Result.Content[0]["text"] = text.FinalContent
	data, _ := json.Marshal(m)
	return data
}

func okForInitialized(_ *http.Request, body []byte) *http.Response {
	if bytes.Contains(body, []byte("notifications/initialized")) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
	}
	return nil
}

func endlessForAll(r *http.Request, body []byte) *http.Response {
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && !bytes.Contains(body, []byte("initialize")) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}, "Mcp-Session-Id": {"new"}}, Body: io.NopCloser(strings.NewReader(": hello\n\n"))}
	}
	return nil
}

func (p *proxy) isLatest(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.Header.Get("Mcp-Session-Id") == p.latest
}

// start listens before a companion and returns the address.
func (p *proxy) start(t *testing.T, backend string) string {
	t.Helper()
	l, err := net.Listen("tcp4", p.address)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)
	to := &url.URL{Scheme: "http", Host: backend}
	rp := &httputil.ReverseProxy{FlushInterval: -1, Transport: p.trip(), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		if r.In.Host == address {
			r.Out.Host = backend // its own name
		}
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	s := &http.Server{Handler: rp}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return address
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *proxy) trip() http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		var asked []byte
		if r.Body != nil {
			asked, _ = io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(asked))
		}
		if p.request != nil {
			if answer := p.request(r, asked); answer != nil {
				answer.Request = r
				return answer, nil
			}
		}
		if r.Method == http.MethodGet {
			p.mu.Lock()
			p.gets[r.Header.Get("Mcp-Session-Id")]++
			p.mu.Unlock()
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			p.mu.Lock()
			p.latest = id
			p.mu.Unlock()
		}
		p.rewrite(r, res, asked)
		return res, nil
	})
}

func (p *proxy) rewrite(r *http.Request, res *http.Response, asked []byte) {
	switch stream := res.Header.Get("Content-Type") == "text/event-stream"; {
	case stream && p.event != nil:
		res.Body = p.filter(r, res.Body)
	case !stream && p.body != nil:
		answered, _ := io.ReadAll(res.Body)
		answered = p.body(r, asked, answered)
		res.Body = io.NopCloser(bytes.NewReader(answered))
		res.ContentLength = int64(len(answered))
		res.Header.Set("Content-Length", fmt.Sprint(len(answered)))
	}
}

// filter swallows events.
func (p *proxy) filter(r *http.Request, in io.ReadCloser) io.ReadCloser {
	out, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { in.Close() })
	go func() {
		defer w.Close()
		buf := make([]byte, 64<<10)
		var rest []byte
		for {
			n, err := in.Read(buf)
			rest = append(rest, buf[:n]...)
			for {
				i := bytes.Index(rest, []byte("\n\n"))
				if i < 0 {
					break
				}
				if one := string(rest[:i+2]); !strings.Contains(one, "data: ") || p.event(r, one) {
					if _, err := w.Write(rest[:i+2]); err != nil {
						return
					}
				}
				rest = rest[i+2:]
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// Whatever a companion or a driver says, nothing breaks.
func FuzzCompare(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\nContent-Type: application/json\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}", "data: {}\n\n")
	f.Fuzz(func(t *testing.T, want, got string) {
		a, b := parseAnswer(want), parseAnswer(got)
		_, _ = sameBody(a.body, b.body)
		_, _ = sameEvents(parseEvents(want), parseEvents(got), true)
		_ = reply(got)
		if ok, why := sameBody(a.body, a.body); !ok && json.Valid([]byte(a.body)) && why == "" {
			t.Errorf("it differs from itself: %q", a.body)
		}
	})
}

func TestLineDriver(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	var out bytes.Buffer
	d := NewLineDriver(in, &out)
	go func() {
		_, _ = io.WriteString(w, "{\"ok\":true}\n{\"unsupported\":true}\n{\"error\":\"why\"}\nx\n{}\n")
		w.Close()
	}()
	for i, want := range []string{"", ErrUnsupported.Error(), "why", "not JSON", "neither", "has ended"} {
		err := d.Do(t.Context(), `{"reset":true}`)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", i, err, want)
		}
	}
	if !strings.HasPrefix(out.String(), "{\"reset\":true}\n{\"reset\":true}\n") {
		t.Errorf("%q", &out)
	}
}
