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

// gateway lets a client that speaks HTTP reach a server that speaks stdio: it carries lines, and changes nothing in them. What
// the server says unasked is dropped.
type gateway struct {
	w *world

	mu      sync.Mutex
	clients map[string]*relay
	next    int
}

// relay is one session of the gateway's.
type relay struct {
	*client

	mu      sync.Mutex
	waiting map[string]chan string
}

// carry gives each answer to the request that waits for it.
func (r *relay) carry() {
	for line := range r.lines {
		var m struct{ ID json.RawMessage }
		_ = json.Unmarshal([]byte(line), &m)
		r.mu.Lock()
		if c := r.waiting[string(m.ID)]; c != nil {
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
	answer := make(chan string, 1)
	r.mu.Lock()
	if m.ID != nil {
		r.waiting[string(m.ID)] = answer
	}
	r.mu.Unlock()
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.send("%s", line.String())
	w.Header().Set("Mcp-Session-Id", id)
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	select {
	case text := <-answer:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	case <-req.Context().Done():
	}
}

// MCP's own suite, as far as it applies: the suite speaks HTTP, so a gateway of the test's carries its
// messages; those of its tools that are plain are tools of an extension here.
func TestConformance(t *testing.T) {
	peers.Need(t, peers.Conformance)
	w := newWorld(t, nil)
	w.extension("suite", map[string]string{
		"test_simple_text":    "echo This is a simple text response for testing.\n",
		"test_error_handling": "echo This tool intentionally returns an error for testing >&2; exit 1\n",
	})
	manifest := w.read(".gemini/extensions/suite/gemini-extension.json")
	w.file(".gemini/extensions/suite/gemini-extension.json", regexp.MustCompile(`"args":\[[^\]]*\],`).ReplaceAllString(manifest, ""))
	w.allow("suite")
	g := &gateway{w: w, clients: map[string]*relay{}}
	server := httptest.NewServer(g)
	defer server.Close()
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error", "resources-list", "prompts-list"} {
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
