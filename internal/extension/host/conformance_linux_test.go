package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// gateway lets an HTTP client reach a stdio server. It carries lines unchanged. A server's request during a call goes
// to that call's client; other unasked messages are dropped.
type gateway struct {
	w *world

	mu      sync.Mutex
	clients map[string]*relay
	next    int
}

// relay is one session of the gateway.
type relay struct {
	*client

	mu      sync.Mutex
	waiting map[string]chan string
	calling chan string // gets the server's requests; nil while no tool is called
}

// carry passes each answer to the request that waits for it.
func (r *relay) carry() {
	for line := range r.lines {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal([]byte(line), &m)
		r.mu.Lock()
		if m.Method != "" {
			if m.ID != nil && r.calling != nil {
				r.calling <- line
			}
		} else if c := r.waiting[string(m.ID)]; c != nil {
			c <- line
			delete(r.waiting, string(m.ID))
		}
		r.mu.Unlock()
	}
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(req.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	id := req.Header.Get("Mcp-Session-Id")
	if m.Method == "initialize" {
		g.next++
		id = "session-" + string(rune('a'+g.next))
		g.clients[id] = &relay{client: g.w.serve(), waiting: map[string]chan string{}}
		go g.clients[id].carry()
	}
	r := g.clients[id]
	g.mu.Unlock()
	if r == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	answer, asked := make(chan string, 1), make(chan string, 10)
	r.mu.Lock()
	if m.ID != nil && m.Method != "" {
		r.waiting[string(m.ID)] = answer
	}
	if m.Method == "tools/call" {
		r.calling = asked
	}
	r.mu.Unlock()
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.send("%s", line.String())
	w.Header().Set("Mcp-Session-Id", id)
	if m.ID == nil || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "tools/call" {
		stream(req.Context(), w, asked, answer)
		return
	}
	select {
	case text := <-answer:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	case <-req.Context().Done():
	}
}

// stream sends the server's requests and finally its answer as events.
func stream(ctx context.Context, w http.ResponseWriter, asked, answer <-chan string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		var text string
		last := false
		select {
		case text = <-asked:
		case text = <-answer:
			last = true
		case <-ctx.Done():
			return
		}
		io.WriteString(w, "event: message\ndata: "+strings.TrimSpace(text)+"\n\n")
		if w.(http.Flusher).Flush(); last {
			return
		}
	}
}

// MCP's own suite, as far as it applies. The suite speaks HTTP, so a gateway carries its messages. Its plain tools
// are tools of an extension here. Its client can ask its user, and is asked about a tool that nobody has agreed to.
func TestConformance(t *testing.T) {
	peers.Need(t, peers.Conformance)
	w := newWorld(t, Elicitor{})
	w.extension("suite", map[string]string{
		"test_simple_text":    "echo This is a simple text response for testing.\n",
		"test_error_handling": "echo This tool intentionally returns an error for testing >&2; exit 1\n",
	})
	manifest := w.read(".gemini/extensions/suite/gemini-extension.json")
	w.file(".gemini/extensions/suite/gemini-extension.json", regexp.MustCompile(`"args":\[[^\]]*\],`).ReplaceAllString(manifest, ""))
	w.allow("suite")
	w.extension("asking", map[string]string{"test_elicitation": "echo it ran\n"})
	w.file(".gemini/extensions/asking/gemini-extension.json", strings.Replace(w.read(".gemini/extensions/asking/gemini-extension.json"), `"name":"a"`, `"name":"message"`, 1))
	g := &gateway{w: w, clients: map[string]*relay{}}
	server := httptest.NewServer(g)
	defer server.Close()
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-elicitation", "resources-list", "prompts-list"} {
		t.Run(scenario, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			argv := peers.Command(t, peers.Conformance, "server", "--url", server.URL+"/mcp", "--scenario", scenario)
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Dir = t.TempDir() // it may write its results there
			out, err := cmd.CombinedOutput()
			m := regexp.MustCompile(`Passed: (\d+)/(\d+), 0 failed, 0 warnings`).FindStringSubmatch(string(out))
			if err != nil || m == nil || m[1] == "0" || m[1] != m[2] {
				t.Errorf("%v\n%s", err, strings.TrimSpace(string(out)))
			}
		})
	}
}
