package dispatch

import (
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

// What a model is told of a call that cannot be understood can be read as it stands.
func TestBrokenCall(t *testing.T) {
	for _, b := range prompt.Parse(`<tool_code>lintFile("a.js")</tool_code>`) {
		o := New(Options{}).Respond(t.Context(), b)
		if o.Status != "error" || strings.Contains(o.Reply, "&lt;") || !strings.Contains(o.Reply, `name(argument="value")`) {
			t.Errorf("%+v", o)
		}
	}
}
