package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// responses answers one request of /v1/responses with the text of a turn; its calls are left out.
func (s *Server) responses(w http.ResponseWriter, r *http.Request, data []byte) {
	var in struct {
		Input []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"input"`
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body := Body{Tools: in.Tools}
	for _, m := range in.Input {
		content := Content{Role: m.Role}
		for _, text := range texts(m.Content) {
			content.Parts = append(content.Parts, Part{Text: text})
		}
		body.Contents = append(body.Contents, content)
	}
	turn := s.answer(&Request{Path: r.URL.Path, At: time.Now(), Body: body, Side: len(in.Tools) == 0})
	w.Header().Set("Content-Type", "text/event-stream")
	item := map[string]any{"type": "message", "role": "assistant", "id": "scripted", "content": []any{map[string]string{"type": "output_text", "text": turn.Text}}}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
	for _, event := range []map[string]any{
		{"type": "response.created", "response": map[string]any{"id": "scripted"}},
		{"type": "response.output_item.added", "output_index": 0, "item": item},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": map[string]any{"id": "scripted", "usage": usage}},
	} {
		data, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data)
	}
}

// isResponses says whether a request is in this form.
func isResponses(path string) bool { return strings.HasSuffix(path, "/v1/responses") }
