package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An item is one of a conversation in the form of /v1/responses.
type item struct {
	Type      string          `json:"type,omitempty"`
	ID        string          `json:"id,omitempty"`
	Role      string          `json:"role,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// contents puts a conversation into Gemini's form.
func contents(input []item) (all []Content) {
	names := map[string]string{} // of calls
	for _, in := range input {
		content := Content{Role: in.Role}
		switch in.Type {
		case "function_call":
			names[in.CallID] = in.Name
			call := &Call{Name: in.Name}
			_ = json.Unmarshal([]byte(in.Arguments), &call.Args)
			content = Content{Role: "model", Parts: []Part{{FunctionCall: call}}}
		case "function_call_output":
			result := &FunctionResponse{Name: names[in.CallID]}
			result.Response.Output = strings.Join(texts(in.Output), "\n")
			content = Content{Role: "user", Parts: []Part{{FunctionResponse: result}}}
		default:
			for _, text := range texts(in.Content) {
				content.Parts = append(content.Parts, Part{Text: text})
			}
		}
		all = append(all, content)
	}
	return all
}

// responses answers one request of /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request, data []byte) {
	var in struct {
		Input []item            `json:"input"`
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	turn := s.answer(&Request{Path: r.URL.Path, At: time.Now(), Body: Body{Tools: in.Tools, Contents: contents(in.Input)}, Side: len(in.Tools) == 0})
	text, err := json.Marshal([]any{map[string]string{"type": "output_text", "text": turn.Text}})
	if err != nil {
		panic(err)
	}
	items := []item{{Type: "message", Role: "assistant", ID: "scripted", Content: text}}
	for _, call := range toolCalls(turn.Calls, len(s.Requests())) {
		items = append(items, item{Type: "function_call", CallID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	events := []map[string]any{{"type": "response.created", "response": map[string]any{"id": "scripted"}}}
	for n, item := range items {
		events = append(events,
			map[string]any{"type": "response.output_item.added", "output_index": n, "item": item},
			map[string]any{"type": "response.output_item.done", "output_index": n, "item": item})
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
	events = append(events, map[string]any{"type": "response.completed", "response": map[string]any{"id": "scripted", "usage": usage}})
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		data, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data)
	}
}

// isResponses says whether a request is in this form.
func isResponses(path string) bool { return strings.HasSuffix(path, "/v1/responses") }
