package manifest

import (
	"bytes"
	"encoding/json"
)

// schemaID names the published schema of the manifest.
const schemaID = "https://github.com/pollux-companion/pollux/blob/main/docs/schemas/gemini-extension.schema.json"

// Schema returns the JSON Schema of the manifest (draft 7, which editors support best), generated from the table that
// checks manifests. Parse and Load also check what a schema cannot express (files, hosts, names that must differ).
// They accept nothing that the schema refuses, except a numeric version and odd values in mcpServers, which Gemini
// CLI accepts.
func Schema() []byte {
	s := schemaOf(table())
	s.Schema, s.ID, s.Title = "http://json-schema.org/draft-07/schema#", schemaID, "Gemini CLI extension manifest"
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(s) // only strings and numbers, into memory: cannot fail
	return out.Bytes()
}

// jsonSchema holds the keywords in use, in the order of output.
type jsonSchema struct {
	Schema      string        `json:"$schema,omitempty"`
	ID          string        `json:"$id,omitempty"`
	Title       string        `json:"title,omitempty"`
	Description string        `json:"description,omitempty"`
	AnyOf       []*jsonSchema `json:"anyOf,omitempty"`
	Type        string        `json:"type,omitempty"`
	Enum        []string      `json:"enum,omitempty"`
	Pattern     string        `json:"pattern,omitempty"`
	MinLength   int           `json:"minLength,omitempty"`
	MaxLength   int           `json:"maxLength,omitempty"`
	Items       *jsonSchema   `json:"items,omitempty"`
	MaxItems    int           `json:"maxItems,omitempty"`
	Required    []string      `json:"required,omitempty"`
	Properties  properties    `json:"properties,omitempty"`
	Additional  any           `json:"additionalProperties,omitempty"`
	MaxProps    int           `json:"maxProperties,omitempty"`
}

// properties is an object whose members keep the table's order.
type properties []property

type property struct {
	name   string
	schema *jsonSchema
}

// MarshalJSON writes the members in order.
func (ps properties) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	for i, p := range ps {
		out.WriteByte("{,"[min(i, 1)])
		if err := e.Encode(p.name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := e.Encode(p.schema); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func schemaOf(s *shape) *jsonSchema {
	if s.orList {
		one := s.item()
		list := &jsonSchema{Type: "array", MaxItems: s.max, Items: schemaOf(one)}
		list.Items.Description = ""
		single := schemaOf(one)
		single.Description = ""
		return &jsonSchema{Description: s.doc, AnyOf: []*jsonSchema{single, list}}
	}
	out := &jsonSchema{Description: s.doc}
	if s.any {
		return out
	}
	switch s.kind {
	case kindString:
		out.Type, out.Enum, out.MaxLength = "string", s.enum, s.max
		if s.pattern != nil {
			out.Pattern = s.pattern().String()
		}
		if len(s.enum) > 0 {
			out.MaxLength = 0
		}
	case kindBool:
		out.Type = "boolean"
	case kindNumber:
		out.Type = "number"
	case kindArray:
		out.Type, out.MaxItems, out.Items = "array", s.max, schemaOf(s.items)
	case kindObject:
		out.Type, out.MaxProps = "object", s.max
		if s.values != nil {
			out.Additional = schemaOf(s.values)
		}
		if s.strict {
			out.Additional = false
		}
		for _, f := range s.fields {
			out.Properties = append(out.Properties, property{f.name, schemaOf(f.shape)})
			if f.required {
				out.Required = append(out.Required, f.name)
			}
		}
	}
	return out
}
