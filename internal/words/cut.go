package words

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Shorten cuts s to at most n code points. A text that was cut ends with "…". It splits no grapheme cluster, except a
// first one that is longer than n.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	end, left, rest, state := 0, n-1, s, -1
	for left > 0 {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		size := utf8.RuneCountInString(cluster)
		if size > left {
			for ; end == 0 && left > 0; left-- { // a hostile run of marks: only its beginning
				_, first := utf8.DecodeRuneInString(cluster)
				cluster = cluster[first:]
				if left == 1 {
					end = len(s) - len(rest) - len(cluster)
				}
			}
			break
		}
		left, end = left-size, end+len(cluster)
	}
	return strings.TrimSpace(s[:end]) + "…"
}

// Clip returns the longest beginning of s of at most n bytes that ends between two characters. If s is not UTF-8 at
// all, it returns n bytes.
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
