// Package schematest checks the JSON output of the extension commands against the schemas in docs/schemas.
package schematest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/permission"
)

// path returns the file with the schema of a command's output.
func path(t testing.TB, command string) string {
	t.Helper()
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "docs", "schemas", "extensions-"+command+".schema.json")
}

// Strict returns the published schema of a command's output, without additional fields.
func Strict(t testing.TB, command string) *jsonschema.Resolved {
	t.Helper()
	data, err := os.ReadFile(path(t, command))
	var s jsonschema.Schema
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	eachSchema(&s, func(s *jsonschema.Schema) {
		if s.Type == "object" && s.Properties != nil {
			s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
		}
	})
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// schemaOf returns the schema of a command's output, as strict as its Go type.
func schemaOf(command string, output reflect.Type) (*jsonschema.Schema, error) {
	words := func(list ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: list} }
	var manifestSchema jsonschema.Schema
	if err := json.Unmarshal(manifest.Schema(), &manifestSchema); err != nil {
		return nil, err
	}
	s, err := jsonschema.ForType(output, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage]():        {},
		reflect.TypeFor[time.Time]():              {Type: "string", Format: "date-time"},
		reflect.TypeFor[manifest.Severity]():      words("note", "warning", "error"),
		reflect.TypeFor[permission.Permissions](): manifestSchema.Properties["permissions"],
	}})
	if err != nil {
		return nil, err
	}
	eachSchema(s, func(s *jsonschema.Schema) {
		// Values that could be nil in Go are never null here: lists are empty, others are left out.
		if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
			s.Type, s.Types = s.Types[1-i], nil
		}
	})
	s.Title = "pollux extensions " + command + " --json"
	switch command {
	case "prompt":
		s.Title = "pollux extensions prompt --format json"
	case "bridge-status":
		s.Title = "pollux extensions bridge status --json"
	}
	return s, nil
}

// eachSchema calls f for a schema and every schema in it.
func eachSchema(s *jsonschema.Schema, f func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	f(s)
	for _, p := range s.Properties {
		eachSchema(p, f)
	}
	eachSchema(s.Items, f)
	eachSchema(s.AdditionalProperties, f)
}

// Check compares the published schemas with the types that the commands print; with update it writes them. The
// schemas allow additional fields, because programs that read the output must tolerate future ones.
func Check(t *testing.T, update bool, outputs map[string]reflect.Type) {
	t.Helper()
	for command, output := range outputs {
		s, err := schemaOf(command, output)
		if err != nil {
			t.Fatal(err)
		}
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
		eachSchema(s, func(s *jsonschema.Schema) {
			if s.Type == "object" && s.Properties != nil {
				s.AdditionalProperties = nil
			}
		})
		want, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		file := path(t, command)
		if update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v; go test ./internal/cli/... -run TestOutputSchemas -update writes it", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what the code prints; go test ./internal/cli/... -run TestOutputSchemas -update rewrites it\n%s", file, diff)
		}
	}
}
