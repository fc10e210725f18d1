package idetools

import (
	"encoding/json"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/capability"
)

// No extension's tool can take the name of an editor tool.
func TestNamesAreReserved(t *testing.T) {
	for _, one := range all(true) {
		if !capability.Reserved(one.name) {
			t.Errorf("an extension's tool could be called %s", one.name)
		}
	}
}

// An error about arguments says how to correct them.
func TestWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		`{"filePath":"a","line":"2"}`: "these arguments do not fit: line must be a whole number, and is a string",
		`{"filePath":5}`:              "these arguments do not fit: filePath must be a string, and is a number",
		`{"file":"a"}`:                `these arguments do not fit: unknown field "file"`,
		`[]`:                          "these arguments do not fit: they must be one JSON object",
		`{"filePath":"a","line":2}`:   "",
		``:                            "",
	} {
		got := ""
		if err := decode(json.RawMessage(args), &openFileArgs{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
