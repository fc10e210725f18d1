// Package model is a scripted model API on loopback, in the forms that Gemini
// CLI and Qwen Code speak: it answers each turn from a script and keeps every
// request, so that a test sees exactly what a model would have seen.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Call is a function call that the model makes.
type Call struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

// A Turn is one answer of the model: text, function calls, or both.
type Turn struct {
	Text  string
	Calls []Call
}

// Text is a turn that only says something.
func Text(text string) Turn { return Turn{Text: text} }

// WriteFile is a turn that calls write_file. path may be relative to the CLI's folder.
func WriteFile(path, content string) Turn {
	return Turn{Calls: []Call{{Name: "write_file", Args: map[string]any{"file_path": path, "content": content}}}}
}

// ReadFile is a turn that calls read_file. path is absolute.
func ReadFile(path string) Turn {
	return Turn{Calls: []Call{{Name: "read_file", Args: map[string]any{"file_path": path}}}}
}

// Replace is a turn that calls replace.
func Replace(path, before, after string) Turn {
	return Turn{Calls: []Call{{Name: "replace", Args: map[string]any{
		"file_path": path, "instruction": "change it", "old_string": before, "new_string": after,
	}}}}
}

// A Server is the API of one CLI's model. Its methods may be called from any
// goroutine. Each prompt has a script of its own: its first turn answers the
// prompt, the next ones the results of the calls; beyond it the answer is
// "Done.". Side requests (routing, summaries) get harmless JSON by their own
// schema and take no turn.
type Server struct {
	http *httptest.Server

	mu       sync.Mutex        // guards what follows
	scripts  map[string][]Turn // by prompt; one that has begun is gone
	script   []Turn            // what is left of the one that has
	requests []*Request
	tokens   int           // of each prompt, as the API reports them
	changed  chan struct{} // closed and replaced at each new request
}

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	s := &Server{scripts: map[string][]Turn{}, tokens: 10, changed: make(chan struct{})}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// URL is the base address, for GOOGLE_GEMINI_BASE_URL; with /v1 behind it, for OPENAI_BASE_URL.
func (s *Server) URL() string { return s.http.URL }

// Script says how a prompt will be answered.
func (s *Server) Script(prompt string, turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[prompt] = turns
}

// Report says how many tokens the API reports for each prompt from now on, which the CLI
// believes when it judges whether a conversation is long; 10 at first.
func (s *Server) Report(tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = tokens
}

// Requests returns the requests of turns so far, side requests left out, oldest first.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Request
	for _, r := range s.requests {
		if !r.Side {
			all = append(all, r)
		}
	}
	return all
}

// Wait returns the first request of a turn, from the n-th on (0-based), that
// fits, and fails the test when none has come in time. A nil fits means any.
func (s *Server) Wait(t testing.TB, n int, timeout time.Duration, fits func(*Request) bool) *Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		all := s.Requests()
		for _, r := range all[min(n, len(all)):] {
			if fits == nil || fits(r) {
				return r
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the model was not asked within %s; it has had %d requests", timeout, len(all))
		}
	}
}

// ServeHTTP answers one request of a CLI.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if isChat(r.URL.Path) {
		s.chat(w, r, body)
		return
	}
	if isResponses(r.URL.Path) {
		s.responses(w, r, body)
		return
	}
	if isMessages(r.URL.Path) {
		s.messages(w, r, body)
		return
	}
	_, method, _ := strings.Cut(r.URL.Path, ":")
	if method == "countTokens" {
		writeJSON(w, map[string]any{"totalTokens": 10})
		return
	}
	req := &Request{Path: r.URL.Path, At: time.Now()}
	if err := json.Unmarshal(body, &req.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Side = len(req.Body.Tools) == 0
	answer := response(s.answer(req), s.reported())
	if method != "streamGenerateContent" {
		writeJSON(w, answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	data, err := json.Marshal(answer) // escapes U+2028, which the CLI's reader needs
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(w, "data: %s\r\n\r\n", data)
}

// answer keeps the request and chooses what to say.
func (s *Server) answer(req *Request) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	close(s.changed)
	s.changed = make(chan struct{})
	if req.Side {
		return Text(req.Body.GenerationConfig.harmless())
	}
	if turns, ok := s.scripts[req.Prompt()]; ok {
		delete(s.scripts, req.Prompt())
		s.script = turns
	}
	if len(s.script) == 0 {
		return Text("Done.")
	}
	turn := s.script[0]
	s.script = s.script[1:]
	return turn
}

func (s *Server) reported() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens
}

// response puts a turn into the API's form.
func response(turn Turn, tokens int) map[string]any {
	var parts []any
	if turn.Text != "" {
		parts = append(parts, map[string]any{"text": turn.Text})
	}
	for _, c := range turn.Calls {
		parts = append(parts, map[string]any{"functionCall": c})
	}
	return map[string]any{
		"candidates": []any{map[string]any{
			"content":      map[string]any{"role": "model", "parts": parts},
			"finishReason": "STOP", "index": 0,
		}},
		"usageMetadata": map[string]any{"promptTokenCount": tokens, "candidatesTokenCount": 5, "totalTokenCount": tokens + 5},
		"modelVersion":  "scripted",
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler) // the CLI has gone; nobody is left to tell
	}
}
