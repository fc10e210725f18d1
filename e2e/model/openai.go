package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A chat is a request of /v1/chat/completions, in the form that OpenAI's API made usual.
type chat struct {
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"` // a string, or a list of parts
		ToolCalls  []toolCall      `json:"tool_calls"`
		ToolCallID string          `json:"tool_call_id"`
	} `json:"messages"`
	Tools  []json.RawMessage `json:"tools"`
	Stream bool              `json:"stream"`
}

type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON
	} `json:"function"`
}

// body puts a chat into the form that Request's methods know.
func (c *chat) body() Body {
	body := Body{Tools: c.Tools}
	names := map[string]string{} // of calls, by id
	for _, m := range c.Messages {
		content, notice := Content{Role: m.Role}, false
		for _, text := range texts(m.Content) {
			notice = notice || m.Role == "user" && strings.HasPrefix(text, "<system_notification>") // Copilot CLI's own, behind the prompt: its companion is back
			if m.Role != "tool" {
				content.Parts = append(content.Parts, Part{Text: text})
				continue
			}
			result := &FunctionResponse{Name: names[m.ToolCallID]}
			result.Response.Output = text
			content.Parts = append(content.Parts, Part{FunctionResponse: result})
		}
		for _, call := range m.ToolCalls {
			names[call.ID] = call.Function.Name
			part := Part{FunctionCall: &Call{Name: call.Function.Name}}
			_ = json.Unmarshal([]byte(call.Function.Arguments), &part.FunctionCall.Args)
			content.Parts = append(content.Parts, part)
		}
		if !notice {
			body.Contents = append(body.Contents, content)
		}
	}
	return body
}

// texts are the texts of a message's content. What the agent puts before the user's prompt, in the same text, is a part of its own.
func texts(content json.RawMessage) []string {
	var one string
	var parts []struct{ Text string }
	if json.Unmarshal(content, &one) == nil {
		parts = append(parts, struct{ Text string }{one})
	} else {
		_ = json.Unmarshal(content, &parts)
	}
	var all []string
	for _, p := range parts {
		for _, end := range []string{"</system-reminder>", "</current_datetime>", "## My request for Codex:"} {
			if before, after, ok := strings.Cut(p.Text, end); ok && (strings.HasPrefix(before, "<") || strings.HasPrefix(before, "#")) {
				all = append(all, before+end)
				p.Text = strings.TrimSpace(after)
			}
		}
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return all
}

// chat answers one request of an agent that speaks this form.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, data []byte) {
	var c chat
	if err := json.Unmarshal(data, &c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := &Request{Path: r.URL.Path, At: time.Now(), Body: c.body(), Side: len(c.Tools) == 0}
	req.Side = req.Side || strings.HasPrefix(req.Prompt(), "Managed memory ") // asks what to remember, with tools of its own
	turn := s.answer(req)
	message := map[string]any{"role": "assistant", "content": turn.Text}
	reason := "stop"
	if len(turn.Calls) > 0 {
		reason = "tool_calls"
		message["tool_calls"] = toolCalls(turn.Calls, len(s.Requests()))
	}
	usage := map[string]any{"prompt_tokens": s.reported(), "completion_tokens": 5, "total_tokens": s.reported() + 5}
	frame := map[string]any{"id": "scripted", "object": "chat.completion", "created": 1, "model": "scripted", "usage": usage}
	if !c.Stream {
		frame["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}}
		writeJSON(w, frame)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	frame["object"] = "chat.completion.chunk"
	for _, choice := range []map[string]any{
		{"index": 0, "delta": message, "finish_reason": nil},
		{"index": 0, "delta": map[string]any{}, "finish_reason": reason},
	} {
		frame["choices"] = []any{choice}
		data, err := json.Marshal(frame)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// toolCalls puts a turn's calls into this form; n makes their ids unique.
func toolCalls(calls []Call, n int) []toolCall {
	all := make([]toolCall, len(calls))
	for i, c := range calls {
		arguments, err := json.Marshal(c.Args)
		if err != nil {
			panic(err)
		}
		all[i] = toolCall{Index: i, ID: fmt.Sprintf("call-%d-%d", n, i), Type: "function"}
		all[i].Function.Name, all[i].Function.Arguments = c.Name, string(arguments)
	}
	return all
}

// isChat says whether a request is in this form.
func isChat(path string) bool { return strings.HasSuffix(path, "/chat/completions") }
