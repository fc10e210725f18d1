//go:build unix

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A recorder is a companion that keeps what it is sent.
type recorder struct {
	mu     sync.Mutex
	seen   []string
	stream chan string
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rec.keep(r, body)
	w.Header().Set("Mcp-Session-Id", "the-session")
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for {
			select {
			case data := <-rec.stream:
				fmt.Fprintf(w, "data: %s\n\n", data)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	var m struct {
		ID     *int
		Method string
		Params struct {
			Name      string
			Arguments struct{ FilePath string }
		}
	}
	_ = json.Unmarshal(body, &m)
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	c := newCompanion()
	result := c.answers[m.Method]
	if m.Params.Name != "" {
		result = c.answers[m.Params.Name]
	}
	if strings.HasSuffix(m.Params.Arguments.FilePath, "first") {
		rec.stream <- accepted(m.Params.Arguments.FilePath, "accepted")
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, *m.ID, result)
}

// keep notes a request with those of its headers that mean something to a companion.
func (rec *recorder) keep(r *http.Request, body []byte) {
	line := r.Method + " " + r.URL.Path
	for _, name := range []string{"Accept", "Authorization", "Content-Type", "Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id", "User-Agent", "Origin"} {
		if v := r.Header.Values(name); len(v) > 0 {
			line += "\n" + name + ": " + strings.Join(v, ", ")
		}
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.seen = append(rec.seen, line+"\n"+string(body))
}

func (rec *recorder) has(part string) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.ContainsFunc(rec.seen, func(r string) bool { return strings.Contains(r, part) })
}

// requests are what came, but for when the stream was opened, which is a race of the CLI's own.
func (rec *recorder) requests() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	all := slices.Clone(rec.seen)
	slices.SortStableFunc(all, func(a, b string) int {
		return strings.Compare(a[:3], b[:3])
	})
	return all
}

type liveCase struct {
	Do      string            `json:"do"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"dir"`
	Paths   []string          `json:"paths"`
	Content string            `json:"content"`
}

type liveResult struct {
	Fault, Status string
	Diffing       bool
	First, Second struct{ Status, Content string }
}

// sameOnTheWire has a whole session of the published CLI's own client and one of this one, and compares to the byte what a companion sees of them.
func sameOnTheWire(t *testing.T, node *realCLI) {
	base := must(filepath.EvalSymlinks(t.TempDir()))
	var seen [2][]string
	var results [2]liveResult
	ours := &recorder{stream: make(chan string, 4)}
	for i, run := range []func(liveCase) liveResult{
		func(c liveCase) (r liveResult) { node.ask(c, &r); return r },
		func(c liveCase) liveResult {
			return liveOurs(t, c, func() bool { return ours.has(`/w/second","newContent`) })
		},
	} {
		rec := []*recorder{{stream: make(chan string, 4)}, ours}[i]
		s := httptest.NewServer(rec)
		tmp := filepath.Join(base, fmt.Sprint(i))
		ide := filepath.Join(tmp, "gemini", "ide")
		if err := os.MkdirAll(ide, 0o700); err != nil {
			t.Fatal(err)
		}
		port := s.Listener.Addr().(*net.TCPAddr).Port
		file := fmt.Sprintf(`{"port":%d,"workspacePath":%q,"authToken":"the-token","ideInfo":{"name":"x","displayName":"X"}}`, port, base)
		if err := os.WriteFile(filepath.Join(ide, fmt.Sprintf("gemini-ide-server-%d-%d.json", os.Getpid(), port)), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		results[i] = run(liveCase{
			Do: "live", Dir: base, Content: "<b>é😀\u2028\n", Paths: []string{"/w/first", "/w/second"},
			Env: map[string]string{"TMPDIR": tmp, "SSH_CONNECTION": "1"},
		})
		seen[i] = rec.requests()
		s.CloseClientConnections()
		s.Close()
	}
	if diff := cmp.Diff(results[0], results[1]); diff != "" {
		t.Errorf("what came of it (-real +ours):\n%s", diff)
	}
	if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
		t.Errorf("what was sent (-real +ours):\n%s", diff)
	}
	if len(seen[0]) < 7 || results[0].First.Content != "accepted" || results[0].Second.Content != "edited" {
		t.Errorf("the real one did not do what the test is about: %+v, %q", results[0], seen[0])
	}
}

// opened says that the second diff has been asked for: its answer to the terminal must not overtake it.
func liveOurs(t *testing.T, c liveCase, opened func() bool) (r liveResult) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := New(&World{Dir: c.Dir, Environ: []string{"TMPDIR=" + c.Env["TMPDIR"], "SSH_CONNECTION=1"}}, nil)
	defer cl.Close()
	if err := cl.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	word := map[bool]string{true: "accepted", false: "rejected"}
	take := func(out Outcome, err error) (of struct{ Status, Content string }) {
		if err != nil {
			t.Error(err)
		}
		of.Status = word[out.Accepted]
		if out.Content != nil {
			of.Content = *out.Content
		}
		return of
	}
	r.First = take(cl.OpenDiff(ctx, c.Paths[0], c.Content))
	done := make(chan struct{ Status, Content string }, 1)
	go func() { done <- take(cl.OpenDiff(ctx, c.Paths[1], c.Content)) }()
	for deadline := time.Now().Add(30 * time.Second); !opened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no second diff")
		}
	}
	if err := cl.Resolve(ctx, c.Paths[1], true); err != nil {
		t.Error(err)
	}
	r.Second = <-done
	r.Status, r.Diffing = string(cl.Status().State), cl.Diffing()
	return r
}
