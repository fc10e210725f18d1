package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/jsontext"
)

// A Tool is one tool of a dialect. Its arguments are strings.
type Tool struct {
	About               string
	Arguments, Required []string
	// Run returns the texts of the answer's blocks. Its error tells the model why there are none.
	Run func(ctx context.Context, s *Session, m jsonrpc.Message) ([]string, error)
}

// Tools are a dialect's, by their names.
type Tools map[string]Tool

// List returns the result of tools/list.
func (t Tools) List() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		properties := map[string]any{}
		for _, a := range t[name].Arguments {
			properties[a] = map[string]string{"type": "string"}
		}
		data, err := json.Marshal(map[string]any{
			"name": name, "description": t[name].About,
			"inputSchema": map[string]any{"type": "object", "properties": properties, "required": append([]string{}, t[name].Required...)},
		})
		if err != nil {
			panic(err) // cannot happen: it holds strings
		}
		all = append(all, string(data))
	}
	return `{"tools":[` + strings.Join(all, ",") + `]}`
}

// Call implements Dialect.Call.
func (t Tools) Call(ctx context.Context, s *Session, m jsonrpc.Message, reply func([]byte)) {
	one, ok := t[m.Call.Name.Value]
	if m.Call.Name.State != jsontext.Good || !ok {
		reply(jsonrpc.Error(m.ID, jsonrpc.CodeInvalidParams, "unknown tool"))
		return
	}
	for _, name := range one.Arguments {
		a := m.Call.Text(name)
		if a.State == jsontext.Good || a.State == jsontext.Absent && !slices.Contains(one.Required, name) {
			continue
		}
		reply(jsonrpc.Failed(m.ID, fmt.Sprintf("%s must be a string that is text", name)))
		return
	}
	texts, err := one.Run(ctx, s, m)
	if err != nil {
		reply(jsonrpc.Failed(m.ID, err.Error()))
		return
	}
	reply(jsonrpc.Texts(m.ID, texts...))
}

// JSON returns the answer of a tool with one block, the JSON of v.
func JSON(v any) ([]string, error) {
	data, err := json.Marshal(v)
	return []string{string(data)}, err
}
