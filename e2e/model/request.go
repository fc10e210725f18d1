package model

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// A Request is one question of the CLI to its model.
type Request struct {
	Path string
	At   time.Time
	Body Body
	// Side says that it is the CLI's own question (routing, summary), not a turn.
	Side bool
}

// Body is the part of a request that tests look at.
type Body struct {
	Contents         []Content         `json:"contents"`
	Tools            []json.RawMessage `json:"tools"`
	GenerationConfig generationConfig  `json:"generationConfig"`
}

// Content is one message of the conversation.
type Content struct {
	Role  string `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a message.
type Part struct {
	Text             string            `json:"text"`
	FunctionCall     *Call             `json:"functionCall"`
	FunctionResponse *FunctionResponse `json:"functionResponse"`
}

// FunctionResponse is what the CLI tells the model of a call's result.
type FunctionResponse struct {
	Name     string `json:"name"`
	Response struct {
		Output string `json:"output"`
		Error  string `json:"error"`
	} `json:"response"`
}

// Place is a cursor as the model sees it: 1-based line, 1-based UTF-16 character.
type Place struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// ActiveFile is the file that the user looks at, as the model sees it.
type ActiveFile struct {
	Path         string  `json:"path"`
	PreviousPath string  `json:"previousPath"`
	Cursor       *Place  `json:"cursor"`
	SelectedText *string `json:"selectedText"`
}

// EditorContext is what the CLI tells the model of the editor: whole at
// first, later only Changes.
type EditorContext struct {
	ActiveFile     *ActiveFile `json:"activeFile"`
	OtherOpenFiles []string    `json:"otherOpenFiles"`
	Changes        *Changes    `json:"changes"`
}

// Changes is what happened in the editor since the last prompt.
type Changes struct {
	FilesOpened       []string    `json:"filesOpened"`
	FilesClosed       []string    `json:"filesClosed"`
	ActiveFileChanged *ActiveFile `json:"activeFileChanged"`
	CursorMoved       *ActiveFile `json:"cursorMoved"`
	SelectionChanged  *ActiveFile `json:"selectionChanged"`
}

// Prompt is the last text of the user's, "" when the request brings a function's result.
func (r *Request) Prompt() string {
	parts := r.last().Parts
	if len(parts) == 0 {
		return ""
	}
	return parts[len(parts)-1].Text
}

// Results are the function results in the last message, in order.
func (r *Request) Results() []FunctionResponse {
	var all []FunctionResponse
	for _, p := range r.last().Parts {
		if p.FunctionResponse != nil {
			all = append(all, *p.FunctionResponse)
		}
	}
	return all
}

// Context is the editor context that the last message carries, whole or as
// changes; nil when it carries none.
func (r *Request) Context() *EditorContext {
	return contextIn(r.last())
}

func contextIn(c Content) *EditorContext {
	_, rest, ok := strings.Cut(contextText(c), "```json\n")
	body, _, ok2 := strings.Cut(rest, "\n```")
	var e EditorContext
	if !ok || !ok2 || json.Unmarshal([]byte(body), &e) != nil {
		return nil
	}
	return &e
}

// ContextText is the part of the last message that carries the editor context, word by word; "" when none does.
func (r *Request) ContextText() string { return contextText(r.last()) }

func contextText(c Content) string {
	for _, p := range slices.Backward(c.Parts) {
		if strings.Contains(p.Text, "editor context") {
			return p.Text
		}
	}
	return ""
}

func (r *Request) last() Content {
	if len(r.Body.Contents) == 0 {
		return Content{}
	}
	return r.Body.Contents[len(r.Body.Contents)-1]
}

// generationConfig holds the schema of the answer that a side request wants.
type generationConfig struct {
	ResponseSchema     *schema `json:"responseSchema"`
	ResponseJSONSchema *schema `json:"responseJsonSchema"`
}

type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Enum       []any              `json:"enum"`
}

// harmless is an answer that fits the schema and makes the CLI do nothing.
func (g generationConfig) harmless() string {
	s := g.ResponseJSONSchema
	if s == nil {
		s = g.ResponseSchema
	}
	if s == nil {
		return "Nothing to say."
	}
	data, err := json.Marshal(s.value())
	if err != nil {
		return "{}"
	}
	return string(data)
}

func (s *schema) value() any {
	if slices.Contains(s.Enum, any("user")) { // who speaks next: never the model again
		return "user"
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	kind, _ := s.Type.(string)
	switch strings.ToLower(kind) {
	case "object":
		object := map[string]any{}
		for name, p := range s.Properties {
			object[name] = p.value()
		}
		return object
	case "array":
		return []any{}
	case "number", "integer":
		return 1
	case "boolean":
		return false
	}
	return "nothing"
}
