package manifest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/tools/txtar"
)

const docs = "../../../docs/"

// The published schema and the documentation's field table agree with the table of shapes.
func TestPublished(t *testing.T) {
	for file, want := range map[string]string{
		docs + "schemas/gemini-extension.schema.json": string(Schema()),
		docs + "extensions-manifest.md":               page(t, fieldTable()),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v; go test ./internal/extension/manifest -update writes it", err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what the code says; go test ./internal/extension/manifest -update rewrites it\n%s", file, diff)
		}
	}
}

// page returns the manual's page with this table between its two marks.
func page(t *testing.T, table string) string {
	t.Helper()
	const start, end = "<!-- fields: written by go test ./internal/extension/manifest -update -->\n", "<!-- end of fields -->"
	data, err := os.ReadFile(docs + "extensions-manifest.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), start)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no marks for its table")
	}
	return before + start + table + end + after
}

// Another JSON Schema reader accepts the schema and agrees with the checks: Load refuses what the schema refuses, and
// the schema accepts what Load accepts without findings.
func TestSchemaAgrees(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	refused, clean := 0, 0
	try := func(name string, data []byte) {
		var v any
		if json.Unmarshal(data, &v) != nil {
			return
		}
		_, found := Parse(name, data)
		err := resolved.Validate(v)
		numeric := strings.Contains(string(data), `"version": 2`) || strings.Contains(string(data), `"PORT": 3000`)
		if err != nil && found.Err() == nil && !numeric {
			t.Errorf("%s: the schema alone refuses it: %v", name, err)
		}
		if err != nil {
			refused++
		} else if found.Err() == nil {
			clean++
		}
	}
	archives, _ := filepath.Glob("testdata/findings/*.txtar")
	for _, a := range archives {
		archive, err := txtar.ParseFile(a)
		if err != nil {
			t.Fatal(err)
		}
		try(a, bytes.TrimSpace(archive.Files[0].Data))
	}
	examples, _ := filepath.Glob("../../../examples/*/" + FileName)
	templates, _ := filepath.Glob("../scaffold/templates/*/" + FileName)
	if len(examples) < 2 || len(templates) < 10 {
		t.Fatalf("%d examples, %d templates", len(examples), len(templates))
	}
	for _, f := range append(examples, templates...) {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		try(f, bytes.ReplaceAll(data, []byte("EXTENSION_NAME"), []byte("a")))
	}
	if refused < 6 || clean < len(examples)+len(templates) {
		t.Errorf("the schema refused %d and both took %d", refused, clean)
	}
}

// fieldTable returns the documentation's field table, as Markdown: one row for each field with its path, type, whether
// it is required, and its meaning.
func fieldTable() string {
	var b strings.Builder
	b.WriteString("| field | type | |\n| --- | --- | --- |\n")
	rows(&b, "", table())
	return b.String()
}

func rows(b *strings.Builder, prefix string, s *shape) {
	for _, f := range s.fields {
		path := prefix + f.name
		kind, below := typeWord(f.shape)
		required := ""
		if f.required {
			required = "**required** "
		}
		b.WriteString("| `" + path + "` | " + kind + " | " + required + f.shape.doc + " |\n")
		if below != nil {
			rows(b, path+below.suffix, below.shape)
		}
	}
}

type nested struct {
	suffix string
	shape  *shape
}

// typeWord returns a field's type in words, and where its own fields are.
func typeWord(s *shape) (string, *nested) {
	switch {
	case s.any:
		return "any", nil
	case s.orList:
		return "string or list", nil
	case len(s.enum) > 0:
		return "`" + strings.Join(s.enum, "` `") + "`", nil
	case s.kind == kindArray && s.items.kind == kindObject:
		return "list of objects", &nested{"[].", s.items}
	case s.kind == kindArray:
		return "list of strings", nil
	case s.kind == kindObject && s.values != nil && s.values.kind == kindObject:
		return "object of objects", &nested{".NAME.", s.values}
	case s.kind == kindObject && s.values != nil:
		return "object of strings", nil
	case s.kind == kindObject:
		return "object", &nested{".", s}
	case s.kind == kindBool:
		return "true or false", nil
	case s.kind == kindNumber:
		return "number", nil
	}
	return "string", nil
}
