package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// F-6: what is text does not depend on who asks.
func TestValid(t *testing.T) {
	for _, s := range []string{"", "a", "12345678", "é", "1234567é", "\xff", "1234567\xff", "12345678\xc3", "世界世界世界\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80 long enough to be looked at in words"} {
		for pad := range 9 {
			s := strings.Repeat("x", pad) + s
			if got, want := Valid([]byte(s)), utf8.ValidString(s); got != want {
				t.Errorf("Valid(%q) = %v", s, got)
			}
		}
	}
}

func FuzzValid(f *testing.F) {
	f.Add([]byte("1234567\xc3\xa9 and \xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if Valid(b) != utf8.Valid(b) {
			t.Errorf("disagree about %q", b)
		}
	})
}
