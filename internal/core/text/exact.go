package text

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Exact says whether encoding/json reads raw without a loss. It silently replaces bytes that are not UTF-8, and escapes of half a
// surrogate pair, by U+FFFD. Check a text that must arrive as it was sent before you decode it (SPEC F-6).
func Exact(raw []byte) bool { return utf8.Valid(raw) && !hasHalf(raw) }

// hasHalf says whether JSON escapes half a surrogate pair. It needs no parser: a backslash stands only in strings.
func hasHalf(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return false
		}
		raw = raw[i:]
		first := unit(raw)
		switch {
		case first < 0:
			raw = raw[2:]
		case first >= 0xDC00 && first < 0xE000:
			return true
		case first >= 0xD800 && first < 0xDC00:
			second := unit(raw[6:])
			if second < 0xDC00 || second >= 0xE000 {
				return true
			}
			raw = raw[12:]
		default:
			raw = raw[6:]
		}
	}
}

// unit reads \uXXXX at the start of raw; -1 when raw begins with something else.
func unit(raw []byte) int {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(n)
}
