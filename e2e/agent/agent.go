// Package agent is a small, honest stand-in for a CLI at the companion's
// agent port, for tests of the editor page that need proposals and no
// terminal. What it sends and expects is what the published CLI does; tests
// of the CLI itself use that.
package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is for what a loaded machine may take.
const patience = 60 * time.Second

// An Outcome is what the companion said of a diff.
type Outcome struct {
	// Method is "ide/diffAccepted" or "ide/diffRejected".
	Method   string
	FilePath string
	Content  string
}

// A File is one open file of the context.
type File struct {
	Path         string `json:"path"`
	IsActive     bool   `json:"isActive"`
	SelectedText string `json:"selectedText"`
	Cursor       *struct {
		Line      int `json:"line"`
		Character int `json:"character"`
	} `json:"cursor"`
}

// An Agent is one MCP session. Its methods may be called from any goroutine.
type Agent struct {
	t                   testing.TB
	address, token, sid string
	outcomes            chan Outcome

	mu    sync.Mutex // guards what follows
	id    int
	files []File
}

// Connect reads a discovery file and opens a session with a stream.
func Connect(t testing.TB, discoveryFile string) *Agent {
	t.Helper()
	data, err := os.ReadFile(discoveryFile)
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Port      int
		AuthToken string
	}
	if err := json.Unmarshal(data, &found); err != nil {
		t.Fatal(err)
	}
	a := &Agent{
		t: t, token: found.AuthToken, outcomes: make(chan Outcome, 64),
		address: fmt.Sprintf("http://127.0.0.1:%d/mcp", found.Port),
	}
	a.call("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "streamable-http-client", "version": "0.61.0"},
	})
	a.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	ctx, cancel := context.WithCancel(context.Background())
	stream := a.request(ctx, http.MethodGet, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.listen(stream.Body)
	}()
	t.Cleanup(func() {
		cancel()
		stream.Body.Close()
		<-done
	})
	return a
}

// OpenDiff proposes a text for a file and fails the test when that is refused.
func (a *Agent) OpenDiff(path, content string) {
	a.t.Helper()
	if answer := a.tool("openDiff", map[string]any{"filePath": path, "newContent": content}); answer.IsError {
		a.t.Fatalf("openDiff %s: %s", path, answer.text())
	}
}

// Refused proposes a text for a file, fails the test when that is shown, and
// returns what the CLI is told instead.
func (a *Agent) Refused(path, content string) string {
	a.t.Helper()
	answer := a.tool("openDiff", map[string]any{"filePath": path, "newContent": content})
	if !answer.IsError {
		a.t.Fatalf("openDiff %s was not refused", path)
	}
	return answer.text()
}

// CloseDiff takes a proposal back and returns the answer's text.
func (a *Agent) CloseDiff(path string) string {
	a.t.Helper()
	return a.tool("closeDiff", map[string]any{"filePath": path, "suppressNotification": true}).text()
}

// Outcome waits for the next one.
func (a *Agent) Outcome() Outcome {
	a.t.Helper()
	select {
	case o := <-a.outcomes:
		return o
	case <-time.After(patience):
		a.t.Fatal("no outcome")
		return Outcome{}
	}
}

// Quiet fails the test when an outcome has come that nobody waited for.
func (a *Agent) Quiet() {
	a.t.Helper()
	select {
	case o := <-a.outcomes:
		a.t.Errorf("an outcome that nobody asked for: %+v", o)
	default:
	}
}

// Context waits until the newest context fits and returns its files.
func (a *Agent) Context(what string, fits func([]File) bool) []File {
	a.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		a.mu.Lock()
		files := a.files
		a.mu.Unlock()
		if fits(files) {
			return files
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.t.Fatalf("the context does not come to %s; it is %+v", what, a.files)
	return nil
}

type toolResult struct {
	IsError bool
	Content []struct{ Text string }
}

func (r toolResult) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

func (a *Agent) tool(name string, args map[string]any) (r toolResult) {
	a.t.Helper()
	if err := json.Unmarshal(a.call("tools/call", map[string]any{"name": name, "arguments": args}), &r); err != nil {
		a.t.Fatal(err)
	}
	return r
}

// call sends a request and returns its result; a JSON-RPC error fails the test.
func (a *Agent) call(method string, params any) json.RawMessage {
	a.t.Helper()
	a.mu.Lock()
	a.id++
	id := a.id
	a.mu.Unlock()
	body := a.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if i := bytes.Index(body, []byte("data: ")); i >= 0 && !bytes.HasPrefix(body, []byte("{")) {
		body, _, _ = bytes.Cut(body[i+len("data: "):], []byte("\n"))
	}
	var answer struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error != nil {
		a.t.Fatalf("%s: %v, answer %.300s", method, err, body)
	}
	return answer.Result
}

func (a *Agent) send(message any) []byte {
	a.t.Helper()
	data, err := json.Marshal(message)
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := a.request(ctx, http.MethodPost, data)
	defer r.Body.Close()
	if sid := r.Header.Get("Mcp-Session-Id"); sid != "" {
		a.sid = sid
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return body
}

func (a *Agent) request(ctx context.Context, method string, body []byte) *http.Response {
	a.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, a.address, bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2025-06-18")
	if a.sid != "" {
		r.Header.Set("Mcp-Session-Id", a.sid)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body)
		a.t.Fatalf("%s: %s %s", method, answer.Status, text)
	}
	return answer
}

// listen reads the event stream until it ends.
func (a *Agent) listen(stream io.Reader) {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			a.heard([]byte(data))
		}
		if err != nil {
			return
		}
	}
}

func (a *Agent) heard(data []byte) {
	var m struct {
		Method string
		Params struct {
			FilePath, Content string
			WorkspaceState    struct{ OpenFiles []File }
		}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		a.t.Errorf("the stream says %q: %v", data, err)
		return
	}
	switch m.Method {
	case "ide/diffAccepted", "ide/diffRejected":
		a.outcomes <- Outcome{m.Method, m.Params.FilePath, m.Params.Content}
	case "ide/contextUpdate":
		a.mu.Lock()
		a.files = m.Params.WorkspaceState.OpenFiles
		a.mu.Unlock()
	}
}
