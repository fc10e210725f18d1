//go:build unix

package copilot_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/copilot"
	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/core/review"
)

const (
	token    = "copilots-token-that-is-as-long-as-a-real-one-is"
	patience = 30 * time.Second
)

// A scene is a companion that lets Copilot CLI in by its private socket.
type scene struct {
	*clienttest.Companion
	t    *testing.T
	door finding.Door
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c, err := clienttest.Start(clienttest.Options{Base: t.TempDir(), NoFile: true, Change: func(o *mcp.Options) {
		o.Agents = append(o.Agents, mcp.Agent{
			Name: "copilot", Label: copilot.Label, Token: token, Private: true, TokenHeader: copilot.TokenHeader, TokenScheme: copilot.TokenScheme, ProcessHeader: copilot.ProcessHeader,
			Dialect: &copilot.Dialect{Snapshot: o.Store.Snapshot},
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &scene{c, t, finding.Door{Socket: c.Socket, Token: token, Dir: c.Root}}
}

func (s *scene) dial() *copilot.Conn {
	s.t.Helper()
	c, err := copilot.Dial(s.t.Context(), s.door)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// propose asks for a diff, waits until it is open, and returns it with what the answer will be.
func (s *scene) propose(ctx context.Context, c *copilot.Conn, name, content string) (*review.Diff, chan string) {
	s.t.Helper()
	answer := make(chan string, 1)
	path := filepath.Join(s.Root, name)
	go func() {
		data, err := c.Call(ctx, "tools/call", map[string]any{"name": "open_diff", "arguments": map[string]string{
			"original_file_path": path, "new_file_contents": content, "tab_name": "tab of " + name,
		}})
		var r struct {
			IsError bool
			Content []struct{ Text string }
		}
		switch {
		case err != nil:
			answer <- "error: " + err.Error()
		case json.Unmarshal(data, &r) != nil || len(r.Content) != 1:
			answer <- "no answer: " + string(data)
		case r.IsError:
			answer <- "undecided: " + r.Content[0].Text
		default:
			answer <- r.Content[0].Text
		}
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		for _, d := range s.Registry.Pending() {
			if d.Proposal().Path == path {
				return d, answer
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no diff of %s", name)
		}
	}
}

func (s *scene) answered(answer chan string) string {
	s.t.Helper()
	select {
	case a := <-answer:
		return a
	case <-time.After(patience):
		s.t.Fatal("no answer")
		return ""
	}
}

// SPEC GC-3: accepted is SAVED, rejected is REJECTED, and whatever else ends a diff is neither; two wait beside each other.
func TestOutcomesGC3(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	c := s.dial()
	close := func(tab string) {
		if _, err := c.Call(t.Context(), "tools/call", map[string]any{"name": "close_diff", "arguments": map[string]string{"tab_name": tab}}); err != nil {
			t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		end  func(d *review.Diff)
		want string
	}{
		"accepted": {func(d *review.Diff) { _ = s.Registry.Accept(d.ID(), d.Now().Seen, nil) }, `"result":"SAVED"`},
		"emptied": {func(d *review.Diff) {
			none := ""
			_ = s.Registry.Accept(d.ID(), d.Now().Seen, &none)
			_ = s.Registry.Reject(d.ID())
		}, `"result":"REJECTED"`},
		"edited": {func(d *review.Diff) {
			mine := "mine\n"
			if err := s.Registry.Accept(d.ID(), d.Now().Seen, &mine); !errors.Is(err, review.ErrReadOnly) {
				t.Errorf("an edit counts: %v", err)
			}
			_ = s.Registry.Accept(d.ID(), d.Now().Seen, nil)
		}, `"result":"SAVED"`},
		"rejected":     {func(d *review.Diff) { _ = s.Registry.Reject(d.ID()) }, `"result":"REJECTED"`},
		"closed":       {func(d *review.Diff) { close(d.Proposal().Key) }, "undecided: "},
		"closed twice": {func(d *review.Diff) { close(d.Proposal().Key); close(d.Proposal().Key) }, "undecided: "},
	} {
		other, otherAnswer := s.propose(t.Context(), c, "other", "b\n")
		d, answer := s.propose(t.Context(), c, name, "a\r\nb\r\n")
		if p := d.Proposal(); p.ReadOnly == "" || p.New != "a\r\nb\r\n" || !strings.HasSuffix(p.Title, "GitHub Copilot CLI #2") && !strings.HasSuffix(p.Title, "#1") {
			t.Errorf("%s: %+v", name, p)
		}
		tt.end(d)
		if got := s.answered(answer); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
		if _, over := other.Outcome(); over {
			t.Errorf("%s: the other one is over too", name)
		}
		_ = s.Registry.Reject(other.ID())
		s.answered(otherAnswer)
	}
}

// SPEC GC-3, L-1: the companion's end, the session's end and a lost connection decide nothing.
func TestUndecidedGC3(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *scene, c *copilot.Conn, hangUp func()){
		"companion's end":  func(s *scene, _ *copilot.Conn, _ func()) { _ = s.Stop() },
		"session's end":    func(_ *scene, c *copilot.Conn, _ func()) { c.Close() },
		"connection's end": func(_ *scene, _ *copilot.Conn, hangUp func()) { hangUp() },
	} {
		s := newScene(t)
		c := s.dial()
		ctx, hangUp := context.WithCancel(t.Context())
		d, answer := s.propose(ctx, c, "f.txt", "a\n")
		end(s, c, hangUp)
		if got := s.answered(answer); strings.Contains(got, "SAVED") || strings.Contains(got, "REJECTED") {
			t.Errorf("%s: %s", name, got)
		}
		select {
		case <-d.Ended():
		case <-time.After(patience):
			t.Fatalf("%s: the diff is still open", name)
		}
		if o, _ := d.Outcome(); o.Kind != review.Withdrawn {
			t.Errorf("%s: %v", name, o.Kind)
		}
		hangUp()
	}
}

// SPEC GC-1, A-1, A-3: the token opens at the socket alone, nothing else opens there, and no browser gets in.
func TestDoorGC1(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	over := func(network, address string) *http.Client {
		return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		}}}
	}
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	for _, tt := range []struct {
		name, network, credential, host, origin, path string
		want                                          int
	}{
		{name: "as it should be", network: "unix", credential: "Nonce " + token, host: "localhost", path: "/mcp", want: 200},
		{name: "at the port", network: "tcp", credential: "Nonce " + token, path: "/mcp", want: 401},
		{name: "at the port as a bearer", network: "tcp", credential: "Bearer " + token, path: "/mcp", want: 401},
		{name: "as a bearer", network: "unix", credential: "Bearer " + token, host: "localhost", path: "/mcp", want: 401},
		{name: "the token alone", network: "unix", credential: token, host: "localhost", path: "/mcp", want: 401},
		{name: "none", network: "unix", host: "localhost", path: "/mcp", want: 401},
		{name: "an empty nonce", network: "unix", credential: "Nonce ", host: "localhost", path: "/mcp", want: 401},
		{name: "another agent's", network: "unix", credential: "Bearer " + clienttest.DefaultToken, host: "localhost", path: "/mcp", want: 401},
		{name: "another host", network: "unix", credential: "Nonce " + token, host: "evil.example", path: "/mcp", want: 403},
		{name: "a browser's", network: "unix", credential: "Nonce " + token, host: "localhost", origin: "https://evil.example", path: "/mcp", want: 403},
		{name: "a browser's own", network: "unix", credential: "Nonce " + token, host: "localhost", origin: "http://localhost", path: "/mcp", want: 403},
		{name: "writing files", network: "unix", credential: "Nonce " + token, host: "localhost", path: "/write-file", want: 403},
		{name: "another path", network: "unix", credential: "Nonce " + token, host: "localhost", path: "/", want: 404},
	} {
		address := s.Socket
		if tt.network == "tcp" {
			address, tt.host = s.Addr, s.Addr
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+tt.host+tt.path, strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for name, value := range map[string]string{"Authorization": tt.credential, "Origin": tt.origin} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		res, err := over(tt.network, address).Do(r)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tt.want || strings.Contains(string(body), token) {
			t.Errorf("%s: %d %s", tt.name, res.StatusCode, body)
		}
	}
	wrong := s.door
	wrong.Token += "x"
	if _, err := copilot.Dial(t.Context(), wrong); !errors.Is(err, lockfile.ErrToken) || strings.Contains(err.Error(), token) {
		t.Errorf("another token: %v", err)
	}
}

// SPEC GC-2: a session says which process it is; what cannot be one counts for nothing.
func TestProcessGC2(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]int{"4711": 4711, "": 0, "1": 0, "-7": 0, "0x12": 0, "99999999999999999999": 0, "4711 ": 4711} {
		s := newScene(t)
		_ = s.dial()
		if got := s.Sessions()[0].Says; got != os.Getpid() {
			t.Errorf("it says that it is process %d, and is %d", got, os.Getpid())
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{copilot.TokenHeader: copilot.TokenScheme + token, "Content-Type": "application/json", "X-Copilot-PID": said} {
			r.Header.Set(name, value)
		}
		res, err := (&http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", s.door.Socket) }}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		all := s.Sessions()
		if got := all[len(all)-1].Says; len(all) != 2 || got != want {
			t.Errorf("of %q: process %d of %d sessions, want %d", said, got, len(all), want)
		}
	}
}

// SPEC GC-2, GC-5: discovery is answered before a session is open, and the selection comes by itself, and when asked for.
func TestContextGC5(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	c := s.dial()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := c.Call(ctx, "server/discover", nil); err == nil || !strings.Contains(err.Error(), "unknown method") {
		t.Errorf("server/discover: %v", err)
	}
	file := filepath.Join(s.Root, "a.txt")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Open(file)
	for {
		params, err := c.Context(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(params), file) {
			break
		}
	}
	data, err := c.Call(ctx, "tools/call", map[string]any{"name": "get_selection", "arguments": map[string]string{}})
	if err != nil || !strings.Contains(string(data), "a.txt") {
		t.Errorf("get_selection: %s, %v", data, err)
	}
	if data, err = c.Call(ctx, "tools/call", map[string]any{"name": "get_diagnostics", "arguments": map[string]string{"uri": "file://" + file + ".new"}}); err != nil || strings.Contains(string(data), `"isError":true`) {
		t.Errorf("of a file that does not exist yet: %s, %v", data, err)
	}
}

// SPEC A-4: the name of a tab is bounded, since the journal and the views repeat it.
func TestLongTabA4(t *testing.T) {
	s := newScene(t)
	for n, refused := range map[int]bool{64 << 10: false, 64<<10 + 1: true, 2 << 20: true} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		answer := make(chan string, 1)
		c := s.dial()
		go func() {
			data, _ := c.Call(ctx, "tools/call", map[string]any{"name": "open_diff", "arguments": map[string]string{
				"original_file_path": filepath.Join(s.Root, "a"), "new_file_contents": "x", "tab_name": strings.Repeat("t", n),
			}})
			answer <- string(data)
		}()
		var got string
		for end := time.Now().Add(patience); got == "" && len(s.Registry.Pending()) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			select {
			case got = <-answer:
			default:
			}
		}
		if strings.Contains(got, "its name has more than") != refused || refused == (len(s.Registry.Pending()) > 0) {
			t.Errorf("%d bytes: %.200s, open: %v", n, got, s.Registry.Pending())
		}
		cancel()
		for end := time.Now().Add(patience); len(s.Registry.Pending()) > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			for _, d := range s.Registry.Pending() {
				_ = s.Registry.Reject(d.ID())
			}
		}
	}
}
