package lsp_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// F-6: the JSON that an agent sent goes to the editor as it is, in either framing, and only while it is the diff's text.
func TestSentJSON(t *testing.T) {
	for _, framing := range []rpc.Framing{rpc.Lines, rpc.Headers} {
		e := start(t, framing, newRegistry)
		e.hello(nil)
		for _, sent := range []string{`"\ufeff\r\n\u0000\/\u00e9\ud83d\ude00\"\\"`, "\"\u2028é\"", `""`, `"` + strings.Repeat(`a\n`, 200_000) + `"`} {
			var content string
			if err := json.Unmarshal([]byte(sent), &content); err != nil {
				t.Fatal(err)
			}
			d, err := e.open(&reviewtest.Owner{Name: "a"}, review.Proposal{Key: "k", Path: "/p/x", Old: "old", New: content, NewJSON: sent})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(e.last("pollux/openDiff"), []byte(sent)) || e.text(d.ID()) != content {
				t.Errorf("the editor got %.80s", e.last("pollux/openDiff"))
			}
			if d.JSON() != "" || d.Proposal().NewJSON != "" {
				t.Error("the JSON is kept beside the text")
			}
		}
	}
}
