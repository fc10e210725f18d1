package jsontext

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unsafe"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// AppendString appends s as a JSON string. It escapes U+2028 and U+2029, because some readers of event streams break
// lines there. A byte that is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s, 1)
	return append(dst, '"')
}

// appendEscaped appends s with level rounds of JSON escaping, in one pass.
func appendEscaped(dst []byte, s string, level int) []byte {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	if !text.Valid(b) {
		b = []byte(strings.ToValidUTF8(s, "\uFFFD"))
	}
	for len(b) > 0 {
		var n int
		dst, n = appendPlain(dst, b)
		if b = b[n:]; len(b) == 0 {
			break
		}
		size, r := 1, rune(b[0])
		if r == 0xE2 {
			if size, r = 3, lineSeparator(b); r == 0 {
				dst, b = append(dst, b[:size]...), b[size:]
				continue
			}
		}
		dst, b = appendEscape(dst, r, level), b[size:]
	}
	return dst
}

// appendPlain appends the part of b before the first byte that may need an escape, and returns its length.
func appendPlain(dst, b []byte) ([]byte, int) {
	n := 0
	for len(b)-n >= 8 {
		if cap(dst)-len(dst) < 8 {
			dst = slices.Grow(dst, len(b)-n+(len(b)-n)/8+8)
		}
		w := binary.LittleEndian.Uint64(b[n:])
		binary.LittleEndian.PutUint64(dst[len(dst):len(dst)+8], w) // excess bytes are overwritten
		few := min(firstSpecial(w), firstE2(w))
		dst, n = dst[:len(dst)+few], n+few
		if few < 8 {
			return dst, n
		}
	}
	for ; n < len(b); n++ {
		c := b[n]
		if c < ' ' || c == '"' || c == '\\' || c == 0xE2 {
			break
		}
		dst = append(dst, c)
	}
	return dst, n
}

// firstE2 counts the bytes of a little-endian word before the first 0xE2, which begins a line separator; 8 without
// one.
func firstE2(w uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	e2 := w ^ 0xE2*ones
	return bits.TrailingZeros64((e2-ones)&^e2&highs) >> 3
}

// lineSeparator returns U+2028 or U+2029 if s begins with it, else 0. s begins with a whole character of three bytes.
func lineSeparator(s []byte) rune {
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

// AppendNested appends s without quotes for a JSON string within a JSON string: escaped twice in one pass.
func AppendNested(dst []byte, s string) []byte { return appendEscaped(dst, s, 2) }
