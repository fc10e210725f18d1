package text

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

func TestUTF16Len(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "日本": 2, "😀": 2, "a😀b": 4, "e\u0301": 2, "\xff\xfe": 2, "\xf0\x9f": 2, "\uffff": 1,
	} {
		if got := UTF16Len(s); got != want {
			t.Errorf("UTF16Len(%q) = %d, want %d", s, got, want)
		}
	}
}

// SPEC C-5: never inside a surrogate pair or a grapheme.
func TestCutUTF16(t *testing.T) {
	family := "👩‍👩‍👧" // 3 emoji with joiners: 8 units
	for _, tt := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"shorter", "abc", 5, "abc"},
		{"exact", "abc", 3, "abc"},
		{"ASCII", "abcdef", 3, "abc"},
		{"nothing", "abc", 0, ""},
		{"negative", "abc", -1, ""},
		{"pair does not fit", "ab😀", 3, "ab"},
		{"pair fits", "ab😀c", 4, "ab😀"},
		{"combining mark stays with its letter", "abe\u0301x", 3, "ab"},
		{"combining mark fits", "abe\u0301x", 4, "abe\u0301"},
		{"letter before a mark beyond the limit", "ae\u0301", 2, "a"},
		{"CR LF is one", "ab\r\ncd", 3, "ab"},
		{"CR LF fits", "ab\r\ncd", 4, "ab\r\n"},
		{"family", "x" + family + "y", 5, "x"},
		{"family fits", "x" + family + "y", 9, "x" + family},
		{"flags pair up from the left", "x🇩🇪🇫🇷", 7, "x🇩🇪"},
		{"Hangul", "가\u11a8각", 1, "가"},
		{"first cluster too long: between code points", "e" + strings.Repeat("\u0301", 50), 10, "e" + strings.Repeat("\u0301", 9)},
		{"first cluster too long: not in a pair", family, 4, "👩\u200d"},
		{"lone CR of a CR LF", "\r\n", 1, "\r"},
		{"invalid bytes", "\xff\xff\xff", 2, "\xff\xff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CutUTF16(tt.in, tt.limit); got != tt.want {
				t.Errorf("CutUTF16(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
			}
		})
	}
}

// cutSlowly is the definition of CutUTF16: every cluster from the start.
func cutSlowly(s string, limit int) string {
	at, used := 0, 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		n := len(utf16Units(g.Str()))
		if used+n > limit {
			break
		}
		used += n
		at += len(g.Str())
	}
	if at > 0 || limit <= 0 {
		return s[:at]
	}
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		if used += utf16.RuneLen(r); used > limit {
			break
		}
		at += size
	}
	return s[:at]
}

func utf16Units(s string) []uint16 { return utf16.Encode([]rune(s)) }

func FuzzCutUTF16(f *testing.F) {
	f.Add("ab\r\ne\u0301😀🇩🇪🇫🇷👩‍👩‍👧\xffक्षि", 7)
	f.Add("\r\n\r\n", 1)
	f.Add("각\u0600a\u0600", 2)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(-1, min(limit, len(s)+1))
		if got, want := CutUTF16(s, limit), cutSlowly(s, limit); got != want {
			t.Errorf("CutUTF16(%q, %d) = %q, want %q", s, limit, got, want)
		}
		if got, want := UTF16Len(s), len(utf16Units(s)); got != want {
			t.Errorf("UTF16Len(%q) = %d, want %d", s, got, want)
		}
	})
}

// The same without the fuzzer, over mixtures of what breaks rules: every cut of each.
func TestCutUTF16AgreesWithItsDefinition(t *testing.T) {
	pieces := []string{"a", " ", "\r", "\n", "\r\n", "\t", "é", "e\u0301", "\u0301", "\u200d", "😀", "👩‍👩‍👧", "🇩", "🇩🇪", "각", "ᄀ", "ᅡ", "\u0600", "क्षि", "\xff", "\u2028", "#\ufe0f\u20e3"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		s := b.String()
		for limit := range UTF16Len(s) + 2 {
			if got, want := CutUTF16(s, limit), cutSlowly(s, limit); got != want {
				t.Fatalf("CutUTF16(%q, %d) = %q, want %q", s, limit, got, want)
			}
		}
	}
}

func TestIsBinary(t *testing.T) {
	for s, want := range map[string]bool{"": false, "a\r\n": false, "日": false, "a\x00b": true, "\xff": true, "\xed\xa0\x80": true} {
		if got := IsBinary([]byte(s)); got != want {
			t.Errorf("IsBinary(%q) = %v, want %v", s, got, want)
		}
	}
}

func BenchmarkCutUTF16(b *testing.B) {
	for name, s := range map[string]string{
		"ASCII":     strings.Repeat("some source code\n", 1<<20/17),
		"Chinese":   strings.Repeat("源代码", 1<<20/9),
		"combining": strings.Repeat("\u0301", 1<<19),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				CutUTF16(s, 16384)
			}
		})
	}
}
