package lsp

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// What exact lets through is what the JSON says; what it refuses would have been changed.
func FuzzExact(f *testing.F) {
	for _, s := range []string{`"x"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\\ud83d"`, `"\\\ud83d"`, "\"\xff\"", `"\ufffd"`, `""`, `5`, ``, `"\u00`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := exact(raw)
		if err != nil {
			return
		}
		if !utf8.ValidString(s) {
			t.Fatalf("%q is let through as %q", raw, s)
		}
		again, _ := json.Marshal(s)
		if back, err := exact(again); err != nil || back != s {
			t.Fatalf("%q became %q, %v", s, back, err)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"processId":1,"workspaceFolders":{},"initializationOptions":{"pollux":{"openDiffs":[{"diffId":"x"}]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p initializeParams
		if decode(raw, &p) == nil {
			if h := p.hello(); h.IDE.Name == "" || h.IDE.DisplayName == "" || len(h.Roots) == 0 {
				t.Fatalf("%+v", h)
			}
		}
	})
}
