package model

import (
	"flag"
	"reflect"
	"testing"

	"github.com/pollux-companion/pollux/internal/cli/schematest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

var rewrite = flag.Bool("update", false, "rewrite the published schemas")

// JSON output conforms to the published schemas.
func TestOutputSchemas(t *testing.T) {
	schematest.Check(t, *rewrite, map[string]reflect.Type{
		"prompt": reflect.TypeFor[prompt.JSON](), "read": reflect.TypeFor[readReport](), "call": reflect.TypeFor[callReport](), "respond": reflect.TypeFor[respondReport](),
		"bridge-status": reflect.TypeFor[bridgeCost](),
	})
}
