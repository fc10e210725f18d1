package jsontext

import (
	"strings"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Line separators U+2028 and U+2029
// are escaped, as some readers of event streams break lines there; a byte that
// is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s, 1)
	return append(dst, '"')
}

// appendEscaped appends s with level rounds of JSON escaping, in one pass.
func appendEscaped(dst []byte, s string, level int) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	start := 0
	for i := 0; ; {
		i += unspecial(s[i:])
		if i == len(s) {
			return append(dst, s[start:]...)
		}
		size, r := 1, rune(s[i])
		if s[i] == 0xE2 {
			if size, r = 3, lineSeparator(s[i:]); r == 0 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, r, level)
		i += size
		start = i
	}
}

// unspecial counts the bytes before one that may need an escape.
func unspecial(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == 0xE2 {
			return i
		}
	}
	return len(s)
}

// lineSeparator is U+2028 or U+2029 when s begins with it, else 0. s begins
// with a whole character of three bytes.
func lineSeparator(s string) rune {
	if s[1] == 0x80 && (s[2] == 0xA8 || s[2] == 0xA9) {
		return 0x2028 + rune(s[2]-0xA8)
	}
	return 0
}

func appendEscape(dst []byte, r rune, level int) []byte {
	slashes := 1<<level - 1
	switch r {
	case '"':
		return append(append(dst, `\\\\\\\`[:slashes]...), '"')
	case '\\':
		return append(dst, `\\\\\\\\`[:slashes+1]...)
	}
	dst = append(dst, `\\\\\\\`[:(slashes+1)/2]...)
	switch r {
	case '\n':
		return append(dst, 'n')
	case '\r':
		return append(dst, 'r')
	case '\t':
		return append(dst, 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// Room estimates the escaped size of a text, in bytes.
func Room(s string) int { return len(s) + len(s)/8 + 128 }

// AppendNested appends s as it stands, without quotes, in a JSON string that is itself in a JSON string: escaped twice in one pass.
func AppendNested(dst []byte, s string) []byte { return appendEscaped(dst, s, 2) }
