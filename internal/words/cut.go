package words

import (
	"strings"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// Shorten cuts s to at most n UTF-16 units. A text that was cut ends with "…", and no grapheme cluster is split.
func Shorten(s string, n int) string {
	if len(text.CutUTF16(s, n)) == len(s) {
		return s
	}
	return strings.TrimSpace(text.CutUTF16(s, n-1)) + "…"
}

// Clip is the longest beginning of s of at most n bytes that ends between two characters. Of bytes that are no UTF-8 at all it takes n.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for i := n; i > max(n-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	if n < utf8.UTFMax {
		return ""
	}
	return s[:n]
}

// ClipEnd is Clip for the end of s.
func ClipEnd(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - max(n, 0)
	for i := from; i < min(from+utf8.UTFMax, len(s)); i++ {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	if n < utf8.UTFMax {
		return ""
	}
	return s[from:]
}
