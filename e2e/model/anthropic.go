package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A conversation is a request of /v1/messages, in the form of Anthropic's API.
type conversation struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"` // a string, or a list of blocks
	} `json:"messages"`
	Tools  []json.RawMessage `json:"tools"`
	Stream bool              `json:"stream"`
}

// A block is one of a message's.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"` // of a result: a string, or a list of blocks
	IsError   bool            `json:"is_error,omitempty"`
}

// blocksOf reads a message's content, which may be a text alone.
func blocksOf(content json.RawMessage) (all []block) {
	var one string
	if json.Unmarshal(content, &one) == nil {
		return []block{{Type: "text", Text: one}}
	}
	_ = json.Unmarshal(content, &all)
	return all
}

// body puts a conversation into the form that Request's methods know. What an agent adds for the model stands before the user's
// prompt.
func (c *conversation) body() Body {
	body := Body{Tools: c.Tools}
	names := map[string]string{} // of calls, by id
	for _, m := range c.Messages {
		content := Content{Role: m.Role}
		var prompts []Part
		for _, b := range blocksOf(m.Content) {
			switch b.Type {
			case "text":
				if strings.HasPrefix(b.Text, "<system-reminder>") {
					content.Parts = append(content.Parts, Part{Text: b.Text})
				} else {
					prompts = append(prompts, Part{Text: b.Text})
				}
			case "tool_use":
				names[b.ID] = b.Name
				call := &Call{Name: b.Name}
				_ = json.Unmarshal(b.Input, &call.Args)
				content.Parts = append(content.Parts, Part{FunctionCall: call})
			case "tool_result":
				result := &FunctionResponse{Name: names[b.ToolUseID]}
				for _, inner := range blocksOf(b.Content) {
					result.Response.Output += inner.Text
				}
				if b.IsError {
					result.Response.Error, result.Response.Output = result.Response.Output, ""
				}
				content.Parts = append(content.Parts, Part{FunctionResponse: result})
			}
		}
		content.Parts = append(content.Parts, prompts...)
		if m.Role == "system" { // what surrounds the conversation; the last message is to be the user's
			body.Contents = append([]Content{content}, body.Contents...)
			continue
		}
		body.Contents = append(body.Contents, content)
	}
	return body
}

// isMessages says whether a request is in this form.
func isMessages(path string) bool { return strings.Contains(path, "/v1/messages") }

// messages answers one request of an agent that speaks this form.
func (s *Server) messages(w http.ResponseWriter, r *http.Request, data []byte) {
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		writeJSON(w, map[string]any{"input_tokens": 10})
		return
	}
	var c conversation
	if err := json.Unmarshal(data, &c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := &Request{Path: r.URL.Path, At: time.Now(), Body: c.body(), Side: len(c.Tools) == 0}
	turn := s.answer(req)
	var blocks []block
	if turn.Text != "" {
		blocks = append(blocks, block{Type: "text", Text: turn.Text})
	}
	reason := "end_turn"
	for i, call := range turn.Calls {
		input, err := json.Marshal(call.Args)
		if err != nil {
			panic(err)
		}
		reason = "tool_use"
		blocks = append(blocks, block{Type: "tool_use", ID: fmt.Sprintf("toolu_%d_%d", len(s.Requests()), i), Name: call.Name, Input: input})
	}
	usage := map[string]any{"input_tokens": s.reported(), "output_tokens": 5}
	message := map[string]any{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": blocks,
		"stop_reason": reason, "stop_sequence": nil, "usage": usage,
	}
	if !c.Stream {
		writeJSON(w, message)
		return
	}
	message["content"], message["stop_reason"] = []block{}, nil
	w.Header().Set("Content-Type", "text/event-stream")
	send(w, "message_start", map[string]any{"message": message})
	for i, b := range blocks {
		start, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": b.Text}
		if b.Type == "tool_use" {
			start = map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": map[string]any{}}
			delta = map[string]any{"type": "input_json_delta", "partial_json": string(b.Input)}
		}
		send(w, "content_block_start", map[string]any{"index": i, "content_block": start})
		send(w, "content_block_delta", map[string]any{"index": i, "delta": delta})
		send(w, "content_block_stop", map[string]any{"index": i})
	}
	send(w, "message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	send(w, "message_stop", map[string]any{})
}

// send writes one event of a stream.
func send(w http.ResponseWriter, kind string, event map[string]any) {
	event["type"] = kind
	data, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
}
