// Package agent is a CLI at the companion's agent port for tests that need
// proposals and no terminal: pollux's own client, which is held against the
// published CLI's code, with words for tests around it.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/client"
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
	Path         string
	IsActive     bool
	SelectedText string
	Cursor       *struct{ Line, Character int }
}

// An Agent is one MCP session. Its methods may be called from any goroutine.
type Agent struct {
	t        testing.TB
	link     *client.Link
	outcomes chan Outcome

	mu    sync.Mutex // guards what follows
	files []File
	lost  bool
}

// Connect reads a discovery file and opens a session with a stream.
func Connect(t testing.TB, discoveryFile string) *Agent {
	t.Helper()
	found := read(t, discoveryFile)
	return Dial(t, found.Port, found.Token)
}

func read(t testing.TB, discoveryFile string) *discovery.File {
	t.Helper()
	data, err := os.ReadFile(discoveryFile)
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Dial opens a session with a stream at a port.
func Dial(t testing.TB, port int, token string) *Agent {
	t.Helper()
	return dial(t, port, token, nil)
}

func dial(t testing.TB, port int, token string, transport http.RoundTripper) *Agent {
	t.Helper()
	a := &Agent{t: t, outcomes: make(chan Outcome, 64)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	a.link, err = client.Dial(ctx, client.Way{Host: "127.0.0.1", Port: port, Token: token}, client.LinkOptions{Notified: a.heard, Broken: a.broken, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.link.Close)
	return a
}

// OpenDiff proposes a text for a file and fails the test when that is refused. It does not wait for the outcome.
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

// Tools are the names of the tools that are offered, in order.
func (a *Agent) Tools() []string {
	a.t.Helper()
	var list struct{ Tools []struct{ Name string } }
	a.call(a.t.Context(), "tools/list", struct{}{}, &list)
	names := make([]string, len(list.Tools))
	for i, tool := range list.Tools {
		names[i] = tool.Name
	}
	return names
}

// NotOpen fails the test unless there is no diff of that file to close.
func (a *Agent) NotOpen(path string) {
	a.t.Helper()
	if answer := a.tool("closeDiff", map[string]any{"filePath": path, "suppressNotification": true}); !answer.IsError {
		a.t.Errorf("closeDiff %s: %s", path, answer.text())
	}
}

// Cancelled proposes a text and takes the question back, as the CLI's library does, when ready says so. The diff was not yet
// shown then.
func (a *Agent) Cancelled(path, content string, ready func()) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := a.link.Call(ctx, "tools/call", map[string]any{"name": "openDiff", "arguments": map[string]any{"filePath": path, "newContent": content}})
		ended <- err
	}()
	ready()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		a.t.Errorf("openDiff %s: %v", path, err)
	}
}

// Outcome waits for the next one.
func (a *Agent) Outcome() Outcome {
	a.t.Helper()
	select {
	case o := <-a.outcomes:
		return o
	case <-time.After(patience):
		a.t.Fatalf("no outcome within %v", patience)
		return Outcome{}
	}
}

// Heard is the next outcome where one has come already.
func (a *Agent) Heard() (o Outcome, ok bool) {
	select {
	case o = <-a.outcomes:
		return o, true
	default:
		return o, false
	}
}

// Lost says whether the session hears nothing more: its companion was away for longer than the CLI's library tries.
func (a *Agent) Lost() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lost
}

// Leave ends the session.
func (a *Agent) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.link.Leave(ctx)
}

// broken tells the end of a stream, which is opened again, from the end of all attempts.
func (a *Agent) broken(err error) {
	var status *client.StatusError
	if !strings.HasPrefix(err.Error(), "Maximum reconnection attempts") && !(errors.As(err, &status) && status.Status == http.StatusNotFound) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = true
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a.call(ctx, "tools/call", map[string]any{"name": name, "arguments": args}, &r)
	return r
}

func (a *Agent) call(ctx context.Context, method string, params, result any) {
	a.t.Helper()
	data, err := a.link.Call(ctx, method, params)
	if err == nil {
		err = json.Unmarshal(data, result)
	}
	if err != nil {
		a.t.Fatalf("%s: %v", method, err)
	}
}

// heard takes a notification, held to the form that the CLI asks for.
func (a *Agent) heard(method string, params json.RawMessage) {
	switch method {
	case "ide/diffAccepted", "ide/diffRejected":
		o := Outcome{Method: method}
		if err := json.Unmarshal(params, &o); err != nil {
			a.t.Errorf("%s says %s: %v", method, params, err)
		}
		a.outcomes <- o
	case "ide/contextUpdate":
		if _, err := client.ParseContext(params); err != nil {
			a.t.Errorf("the CLI would disconnect over %s: %v", params, err)
		}
		// As it was sent: what the CLI drops of it is the companion's to leave out.
		var p struct{ WorkspaceState struct{ OpenFiles []File } }
		if err := json.Unmarshal(params, &p); err != nil {
			a.t.Errorf("the context is %s: %v", params, err)
		}
		a.mu.Lock()
		a.files = p.WorkspaceState.OpenFiles
		a.mu.Unlock()
	}
}
