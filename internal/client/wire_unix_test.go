//go:build unix

package client

import (
	"context"
	"encoding/json"
	"flag"
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

// A recorder is a companion that records its requests.
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

// keep records a request, with the headers that matter to a companion.
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

// requests returns the recorded requests. It leaves out when the stream was opened, because the CLI races with itself
// there.
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

var update = flag.Bool("update", false, "record a session of the published CLI anew")

// recording is a session of the published CLI: every request that a companion received.
const recording = "testdata/session.txt"

// record runs a client against a recording companion, and returns what the companion saw.
func record(t *testing.T, run func(liveCase, *recorder) liveResult) (seen string, result liveResult) {
	t.Helper()
	base := must(filepath.EvalSymlinks(t.TempDir()))
	rec := &recorder{stream: make(chan string, 4)}
	s := httptest.NewServer(rec)
	defer s.Close()
	defer s.CloseClientConnections()
	ide := filepath.Join(base, "gemini", "ide")
	if err := os.MkdirAll(ide, 0o700); err != nil {
		t.Fatal(err)
	}
	port := s.Listener.Addr().(*net.TCPAddr).Port
	file := fmt.Sprintf(`{"port":%d,"workspacePath":%q,"authToken":"the-token","ideInfo":{"name":"x","displayName":"X"}}`, port, base)
	if err := os.WriteFile(filepath.Join(ide, fmt.Sprintf("gemini-ide-server-%d-%d.json", os.Getpid(), port)), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	result = run(liveCase{
		Do: "live", Dir: base, Content: "<b>é😀\u2028\n", Paths: []string{"/w/first", "/w/second"},
		Env: map[string]string{"TMPDIR": base, "SSH_CONNECTION": "1"},
	}, rec)
	if result.First.Content != "accepted" || result.Second.Content != "edited" || result.Status != "connected" || !result.Diffing {
		t.Errorf("what came of it: %+v", result)
	}
	return strings.Join(rec.requests(), "\n\n") + "\n", result
}

// sameOnTheWire runs a whole session of the published CLI's own client. It compares every byte that a companion sees
// with the recording, and the result with our client's.
func sameOnTheWire(t *testing.T, node *realCLI) {
	seen, result := record(t, func(c liveCase, _ *recorder) (r liveResult) { node.ask(c, &r); return r })
	if *update {
		if err := os.WriteFile(recording, []byte(seen), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(recorded(t), seen); diff != "" {
		t.Errorf("the published CLI is not as it was recorded (-recorded +real); record it anew: go test ./internal/client -run TestAsTheRealCLI -update\n%s", diff)
	}
	_, ours := record(t, func(c liveCase, rec *recorder) liveResult { return liveOurs(t, c, rec) })
	if diff := cmp.Diff(result, ours); diff != "" {
		t.Errorf("what came of it (-real +ours):\n%s", diff)
	}
}

func recorded(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// SPEC K-1, K-3: this client, the CLI of pollux's tests, sends what the published CLI was recorded to send, header by
// header and byte for byte. TestAsTheRealCLI checks the recording against the real CLI.
func TestAsRecorded(t *testing.T) {
	t.Parallel()
	seen, _ := record(t, func(c liveCase, rec *recorder) liveResult { return liveOurs(t, c, rec) })
	want := recorded(t)
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("what was sent (-recorded +ours):\n%s", diff)
	}
	for _, method := range []string{"initialize", "notifications/initialized", "tools/list", "openDiff", "closeDiff"} {
		if !strings.Contains(want, `"`+method+`"`) {
			t.Errorf("the recording has no %s", method)
		}
	}
}

// liveOurs does with this client what real.mjs does with the published one. The terminal's answer to the second diff
// must not overtake the opening of that diff.
func liveOurs(t *testing.T, c liveCase, rec *recorder) (r liveResult) {
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
	for deadline := time.Now().Add(30 * time.Second); !rec.has(`/w/second","newContent`); time.Sleep(5 * time.Millisecond) {
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
