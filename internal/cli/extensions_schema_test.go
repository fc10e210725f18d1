package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

const schemasDir = "../../docs/schemas"

// outputs are the commands with --json, and the type that each one prints.
func outputs() map[string]reflect.Type {
	type list struct {
		Extensions []extensionJSON `json:"extensions"`
	}
	type search struct {
		Extensions []store.Entry `json:"extensions"`
	}
	type config struct {
		Settings []valueJSON `json:"settings"`
	}
	type consents struct {
		Consents []consentJSON `json:"consents"`
	}
	return map[string]reflect.Type{
		"run": reflect.TypeFor[runReport](), "explain": reflect.TypeFor[explainReport](), "consent": reflect.TypeFor[consents](), "audit": reflect.TypeFor[audit.Entry](),
		"list": reflect.TypeFor[list](), "search": reflect.TypeFor[search](), "config": reflect.TypeFor[config](),
		"prompt": reflect.TypeFor[prompt.JSON](), "read": reflect.TypeFor[readReport](), "call": reflect.TypeFor[callReport](), "respond": reflect.TypeFor[respondReport](),
		"bridge-status": reflect.TypeFor[bridgeCost](),
		"describe":      reflect.TypeFor[describeReport](), "validate": reflect.TypeFor[validateReport](),
	}
}

// outputSchema is the schema of a command's output, strict for tests.
func outputSchema(command string) (*jsonschema.Schema, error) {
	words := func(list ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: list} }
	var manifestSchema jsonschema.Schema
	if err := json.Unmarshal(manifest.Schema(), &manifestSchema); err != nil {
		return nil, err
	}
	s, err := jsonschema.ForType(outputs()[command], &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage]():      {},
		reflect.TypeFor[time.Time]():            {Type: "string", Format: "date-time"},
		reflect.TypeFor[manifest.Severity]():    words("note", "warning", "error"),
		reflect.TypeFor[manifest.Permissions](): manifestSchema.Properties["permissions"],
	}})
	if err != nil {
		return nil, err
	}
	eachSchema(s, func(s *jsonschema.Schema) {
		// What Go could leave nil is never null here: lists are empty, the rest is left out.
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

// The published schemas are those of the types that are printed. They allow
// more fields than there are today: a program that reads them must, too.
func TestOutputSchemas(t *testing.T) {
	for command := range outputs() {
		s, err := outputSchema(command)
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
		file := filepath.Join(schemasDir, "extensions-"+command+".schema.json")
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v; go test ./internal/cli -update writes it", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what the code prints; go test ./internal/cli -update rewrites it\n%s", file, diff)
		}
	}
}

// conforms holds a file (or stdout) against the schema of a command's output: conforms describe stdout
func conforms(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: conforms COMMAND FILE")
	}
	command, lines := strings.CutSuffix(args[0], "-line") // one object a line
	s, err := outputSchema(command)
	ts.Check(err)
	resolved, err := s.Resolve(nil)
	ts.Check(err)
	texts := []string{ts.ReadFile(args[1])}
	if lines {
		texts = strings.Split(strings.TrimSpace(texts[0]), "\n")
	}
	for _, text := range texts {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			ts.Fatalf("%s is no JSON: %v", args[1], err)
		}
		if err := resolved.Validate(v); err != nil {
			ts.Fatalf("%s: %v", args[1], err)
		}
	}
}
