package extensions

import (
	"flag"
	"reflect"
	"testing"

	"github.com/pollux-companion/pollux/internal/cli/schematest"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

var rewrite = flag.Bool("update", false, "rewrite the published schemas")

// JSON output conforms to the published schemas.
func TestOutputSchemas(t *testing.T) {
	type list struct {
		Extensions []extensionJSON `json:"extensions"`
	}
	type search struct {
		Extensions []store.IndexEntry `json:"extensions"`
	}
	type config struct {
		Settings []valueJSON `json:"settings"`
	}
	type consents struct {
		Consents []consentJSON `json:"consents"`
	}
	schematest.Check(t, *rewrite, map[string]reflect.Type{
		"consent": reflect.TypeFor[consents](), "list": reflect.TypeFor[list](), "search": reflect.TypeFor[search](), "config": reflect.TypeFor[config](),
		"describe": reflect.TypeFor[describeReport](), "validate": reflect.TypeFor[validateReport](),
	})
}
