package tools

import (
	"flag"
	"reflect"
	"testing"

	"github.com/pollux-companion/pollux/internal/cli/schematest"
	"github.com/pollux-companion/pollux/internal/extension/audit"
)

var rewrite = flag.Bool("update", false, "rewrite the published schemas")

// JSON output conforms to the published schemas.
func TestOutputSchemas(t *testing.T) {
	schematest.Check(t, *rewrite, map[string]reflect.Type{
		"run": reflect.TypeFor[runReport](), "explain": reflect.TypeFor[explainReport](), "audit": reflect.TypeFor[audit.Entry](),
	})
}
