package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/client"
)

// A probe is a check that a vector cannot express.
type probe struct {
	name, about string
	try         func(r *run) error // nil is a pass, a *skipped a skip
}

// A skipped says why a probe was not run.
type skipped struct{ why string }

func (s *skipped) Error() string { return s.why }

func skip(format string, args ...any) error { return &skipped{fmt.Sprintf(format, args...)} }

func (r *run) probe(p probe) {
	c := Check{Name: p.name, About: p.about, Result: Pass}
	if err := p.try(r); err != nil {
		c.Result, c.Evidence = Fail, clip(err.Error())
		var s *skipped
		var refused *refusedError
		switch {
		case errors.As(err, &s), errors.Is(err, ErrUnsupported):
			c.Result = Skip
		case errors.As(err, &refused) && r.refuses != "" && p.name != showsDiff:
			c.Result, c.Evidence = Skip, noDiffs
		}
	}
	r.note(c)
}

// showsDiff is the probe that fails when the companion refuses diffs.
const showsDiff = "F-2/shows a diff"

func probes() []probe {
	return slices.Concat(wireProbes(), textProbes(), userProbes(), safetyProbes(), fileProbes(), lifeProbes())
}

func wireProbes() []probe {
	return []probe{
		{"T-2/loopback only", "nobody outside this machine reaches the listener", (*run).loopback},
		{"T-1/no session without initialize", "a request of no session is refused, and opens none", (*run).noSession},
		{"T-5/initialized gets 202", "or the CLI opens no stream at all", (*run).initialized},
		{"T-5/keep-alive", "a stream says something before the CLI takes it for dead", (*run).keepAlive},
		{"T-7/first context", "the first context comes without an event in the editor, and the CLI understands it", (*run).firstContext},
		{"T-3/answers of two sessions", "each session gets its own answers, also the older one", (*run).twoSessions},
		{"T-3/dead sessions end", "a session that nobody uses is freed", (*run).deadSession},
		{"F-1/both tools", "openDiff and closeDiff are offered, or the CLI shows no diffs", (*run).bothTools},
	}
}

// broken is the method that heard receives when a message has come that disconnects the CLI; its parameters are the
// reason.
const broken = "broken"

// link joins the companion; heard receives its notifications.
func (r *run) link() (l *client.Link, heard chan event, err error) {
	heard = make(chan event, 256)
	host, port, err := net.SplitHostPort(r.t.Addr)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	if _, err := fmt.Sscan(port, &n); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	hear := func(method string, params json.RawMessage) {
		select {
		case heard <- event{method, params}:
		default:
		}
	}
	l, err = client.Dial(ctx, client.Way{Host: host, Port: n, Token: r.t.Token}, client.LinkOptions{
		Notified: hear,
		Broken:   func(err error) { hear(broken, json.RawMessage(err.Error())) },
		Strange:  func(err error) { hear(broken, json.RawMessage(err.Error())) },
	})
	if err != nil {
		err = fmt.Errorf("no session: %w", err)
	}
	return l, heard, err
}

func (r *run) leave(l *client.Link) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 2*time.Second)
	defer cancel()
	l.Leave(ctx)
}

func (r *run) tool(l *client.Link, name string, args map[string]any) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	data, err := l.Call(ctx, jsonrpc.MethodToolsCall, map[string]any{"name": name, "arguments": args})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s is not answered within %v", name, r.t.Wait)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var m map[string]any
	return m, json.Unmarshal(data, &m)
}

func (r *run) openDiff(l *client.Link, path, content string) error {
	m, err := r.tool(l, wire.ToolOpenDiff, map[string]any{"filePath": path, "newContent": content})
	if err == nil && m["isError"] == true {
		text, _ := firstText(m)
		err = &refusedError{text}
	}
	return err
}

// A refusedError is the companion's reason for refusing a diff.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return "openDiff is refused: " + e.why }

// closeDiff closes a diff and returns the text under content (edited says whether it is there) and under
// finalContent.
func (r *run) closeDiff(l *client.Link, path string) (content string, edited bool, final string, err error) {
	m, err := r.tool(l, wire.ToolCloseDiff, map[string]any{"filePath": path, "suppressNotification": true})
	if err != nil {
		return "", false, "", err
	}
	text, ok := firstText(m)
	var v map[string]any
	if !ok || m["isError"] == true || json.Unmarshal([]byte(text), &v) != nil {
		return "", false, "", fmt.Errorf("closeDiff does not answer with JSON: %s", text)
	}
	content, edited = v["content"].(string)
	final, _ = v["finalContent"].(string)
	return content, edited, final, nil
}

func (r *run) loopback() error {
	find := r.t.reachable
	if find == nil {
		find = reachable
	}
	addresses, err := find()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(r.t.Addr)
	for _, ip := range addresses {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(r.ctx, "tcp", net.JoinHostPort(ip.String(), port))
		if err == nil {
			conn.Close()
			return fmt.Errorf("it listens at %s too", ip)
		}
	}
	if len(addresses) == 0 {
		return skip("this machine has no other address than loopback")
	}
	return nil
}

// reachable returns the addresses at which other machines reach this one.
func reachable() ([]net.IP, error) {
	all, err := net.InterfaceAddrs()
	return others(all), err
}

// others returns the addresses of a machine that can be reached from outside.
func others(all []net.Addr) []net.IP {
	var ips []net.IP
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			ips = append(ips, n.IP)
		}
	}
	return ips
}

func (r *run) post(ctx context.Context, session, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.t.Addr+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.t.Token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	return r.http.Do(req)
}

func (r *run) noSession() error {
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	res, err := r.post(ctx, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"closeDiff","arguments":{"filePath":"/x"}}}`)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		r.open = append(r.open, id)
		return errors.New("a request that is not initialize gets a session")
	}
	if res.StatusCode < 400 {
		return fmt.Errorf("it is answered with %s", res.Status)
	}
	return nil
}

const initializeBody = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"streamable-http-client","version":"0.61.0"}}}`

// rawSession opens a session without a stream and returns its id and the status of initialized.
func (r *run) rawSession() (id string, status int, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	res, err := r.post(ctx, "", initializeBody)
	if err != nil {
		return "", 0, err
	}
	res.Body.Close()
	id = res.Header.Get("Mcp-Session-Id")
	r.open = append(r.open, id)
	res, err = r.post(ctx, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		return id, 0, err
	}
	res.Body.Close()
	return id, res.StatusCode, nil
}

func (r *run) initialized() error {
	_, status, err := r.rawSession()
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("it gets %d", status)
	}
	return err
}

func (r *run) keepAlive() error {
	if r.t.Silence == 0 {
		return skip("it takes a minute: --slow")
	}
	id, _, err := r.rawSession()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.t.Addr+"/mcp", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.t.Token)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", id)
	res, err := r.http.Do(req) //nolint:bodyclose // it is, below
	if err != nil {
		return err
	}
	defer res.Body.Close()
	bytes := make(chan struct{}, 64)
	go func() {
		buf := make([]byte, 4096)
		for {
			if n, err := res.Body.Read(buf); err != nil || n == 0 {
				return
			}
			select {
			case bytes <- struct{}{}:
			default:
			}
		}
	}()
	// A greeting comes at once; a keep-alive comes later, after silence.
	if err := r.pause(min(r.t.Silence/4, time.Second)); err != nil {
		return err
	}
	for len(bytes) > 0 {
		<-bytes
	}
	timer := time.NewTimer(r.t.Silence)
	defer timer.Stop()
	select {
	case <-bytes:
		return nil
	case <-timer.C:
		return fmt.Errorf("the stream says nothing for %v", r.t.Silence)
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// next waits for a notification with one of the methods.
func (r *run) next(heard chan event, methods ...string) (event, error) {
	timer := time.NewTimer(r.t.Wait)
	defer timer.Stop()
	for {
		select {
		case e := <-heard:
			if slices.Contains(methods, e.method) {
				return e, nil
			}
			if e.method == broken {
				return event{}, fmt.Errorf("the CLI would disconnect: %s", e.params)
			}
		case <-timer.C:
			return event{}, fmt.Errorf("no %s within %v", strings.Join(methods, " or "), r.t.Wait)
		case <-r.ctx.Done():
			return event{}, r.ctx.Err()
		}
	}
}

func (r *run) firstContext() error {
	l, heard, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	e, err := r.next(heard, wire.NotifyContext)
	if err == nil {
		_, err = client.ParseContext(e.params)
	}
	return err
}

func (r *run) twoSessions() error {
	first, _, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(first)
	if err := r.openDiff(first, filepath.Join(r.dir, "first"), "1"); err != nil {
		return err
	}
	second, _, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(second)
	if err := r.openDiff(second, filepath.Join(r.dir, "second"), "2"); err != nil {
		return err
	}
	for _, one := range []struct {
		l    *client.Link
		name string
		text string
	}{{first, "first", "1"}, {second, "second", "2"}} {
		content, _, final, err := r.closeDiff(one.l, filepath.Join(r.dir, one.name))
		if err != nil {
			return fmt.Errorf("the %s session: %w", one.name, err)
		}
		if content != one.text && final != one.text {
			return fmt.Errorf("the %s session gets another text", one.name)
		}
	}
	return nil
}

func (r *run) deadSession() error {
	if r.t.Grace == 0 {
		return skip("it takes half a minute: --slow")
	}
	id, _, err := r.rawSession()
	if err != nil {
		return err
	}
	path, _ := json.Marshal(filepath.Join(r.dir, "left.txt"))
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"filePath":%s,"newContent":"x"}}}`
	if _, err := r.ask(id, fmt.Sprintf(call, 1, wire.ToolOpenDiff, path)); err != nil {
		return err
	}
	if err := r.pause(r.t.Grace + r.t.Grace/4); err != nil {
		return err
	}
	// The companion may accept the old session id, but its open diff must be gone.
	answer, err := r.ask(id, fmt.Sprintf(call, 2, wire.ToolCloseDiff, path))
	if err == nil && !strings.Contains(answer, `"isError":true`) {
		err = fmt.Errorf("after %v without a stream or a request its diff is still open", r.t.Grace)
	}
	return err
}

// ask posts a request in a session and returns the response; a session that has ended counts as isError.
func (r *run) ask(session, body string) (string, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	res, err := r.post(ctx, session, body)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return `"isError":true`, nil
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return strings.ReplaceAll(string(data), " ", ""), err
}

// tools reads the first page of the tools list into v, as the CLI does. It leaves the session open.
func (r *run) tools(v any) (*client.Link, error) {
	l, _, err := r.link()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	data, err := l.Call(ctx, jsonrpc.MethodToolsList, struct{}{})
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		r.leave(l)
		return nil, fmt.Errorf("tools/list: %w", err)
	}
	return l, nil
}

func (r *run) bothTools() error {
	var list struct{ Tools any }
	l, err := r.tools(&list)
	if err != nil {
		return err
	}
	defer r.leave(l)
	want := []any{map[string]any{"name": wire.ToolOpenDiff}, map[string]any{"name": wire.ToolCloseDiff}}
	if ok, why := sameTools(want, list.Tools); !ok {
		return errors.New(why)
	}
	return nil
}
