package text

import (
	"encoding/json"
	"strings"
	"testing"
)

// SPEC F-6: what encoding/json would replace is seen before.
func TestExact(t *testing.T) {
	for raw, want := range map[string]bool{
		`"plain"`: true, `"é 🎈"`: true, `"\ud83c\udf88"`: true, `"\\ud83c"`: true, `"\u00e9\n\"\\"`: true, `{"a":"\uFFFD"}`: true, `""`: true,
		"\"\xff\"": false, "\"\xc3\"": false, "\"\xed\xa0\x80\"": false, "\"\xc0\x80\"": false, `"\ud83c"`: false, `"\udf88"`: false,
		`"\ud83c\ud83c\udf88"`: false, `"\ud83cx\udf88"`: false, `"\\\ud83c"`: false, `"\ud83c\u00e9"`: false, `{"\udc00":1}`: false, `"\uDBFF\uDFFF"`: true, `"\udb`: true,
	} {
		if got := Exact([]byte(raw)); got != want {
			t.Errorf("%q: %v", raw, got)
		}
	}
}

func FuzzExact(f *testing.F) {
	for _, s := range []string{`"a\ud83c\udf88"`, `"\\\ud83c"`, "\"\xff\"", `"\u"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return
		}
		replaced := strings.Count(s, "\uFFFD") > strings.Count(string(raw), "\uFFFD")+strings.Count(strings.ToLower(string(raw)), `\ufffd`)
		if replaced && Exact(raw) {
			t.Errorf("%q becomes %q unseen", raw, s)
		}
	})
}
