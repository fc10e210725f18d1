package lsp

import (
	"encoding/json"
	"runtime"
	"strings"
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

// A text of megabytes is not copied on its way from a message to the registry, where encoding/json made three copies.
func TestLargeTextIsNotCopied(t *testing.T) {
	text := strings.Repeat("\tif err != nil {\n\t\treturn \"Größe\"\n\t}\n", 1<<16)
	encoded, _ := json.Marshal(text)
	params := append(append([]byte(`{"diffId":"d","content":`), encoded...), `,"version":7}`...)
	var p struct {
		ID      string          `json:"diffId"`
		Version int             `json:"version"`
		Content json.RawMessage `json:"content"`
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := decodeText(params, &p, &p.Content)
	got, err2 := exact(p.Content)
	runtime.ReadMemStats(&after)
	if err != nil || err2 != nil || got != text || p.ID != "d" || p.Version != 7 {
		t.Fatalf("%v, %v, %+v", err, err2, p)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(len(text))/2 { // others allocate meanwhile
		t.Errorf("%d bytes for a text of %d", n, len(text))
	}
	for _, odd := range []string{`{"content":"` + text[:3], `{"content":5}`, `{"content":null,"x":"` + strings.Repeat("y", large) + `"}`, `[]`} {
		p.Content = nil
		if err := decodeText(json.RawMessage(odd), &p, &p.Content); err == nil {
			if s, err := exact(p.Content); err == nil {
				t.Errorf("%.20s: %q is taken for a text", odd, s)
			}
		}
	}
}

// A large text that nobody has checked before is refused where a small one would be, and no other part of its message is lost.
func TestLargeUnchecked(t *testing.T) {
	fill := strings.Repeat("é\\n", large)
	for _, end := range []string{``, `\x`, `\ud83d`, `\u12`, "\x01", "\xff"} {
		var out struct {
			Content json.RawMessage `json:"content"`
			Version int             `json:"version"`
		}
		if err := decodeText(json.RawMessage(`{"content":"`+fill+end+`","version":7}`), &out, &out.Content); err != nil || out.Version != 7 {
			t.Fatalf("%q: %+v, %v", end, out.Version, err)
		}
		if content, err := exact(out.Content); (err == nil) != (end == "") || err == nil && content != strings.Repeat("é\n", large) {
			t.Errorf("%q: %d bytes, %v", end, len(content), err)
		}
	}
	if err := decodeText(json.RawMessage(`{"content":"`+fill+`","version":"\x"}`), new(struct{}), new(json.RawMessage)); err == nil {
		t.Error("another part that is no JSON is taken")
	}
}
