package jsontext

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// AppendString appends s as a JSON string. It escapes U+2028 and U+2029, because some readers of event streams break
// lines there. A byte that is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s, 1)
	return append(dst, '"')
}

// appendEscaped appends s with level rounds of JSON escaping, 1 or 2, in one pass.
func appendEscaped(dst []byte, s string, level int) []byte {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	if !utf8.Valid(b) {
		b = []byte(strings.ToValidUTF8(s, "\uFFFD"))
	}
	out, n := dst[:cap(dst)], len(dst)
	for len(b) > 0 {
		if len(out)-n < 16 { // a step writes a word of 8 bytes, and then an escape of at most 7
			out = slices.Grow(out[:n], len(b)+len(b)/8+16)
			out = out[:cap(out)]
		}
		if len(b) >= 8 {
			w := binary.LittleEndian.Uint64(b)
			binary.LittleEndian.PutUint64(out[n:], w) // excess bytes are overwritten
			few := firstEscaped(w)
			b, n = b[few:], n+few
			if few == 8 {
				continue
			}
		}
		c, size := b[0], 1
		if as := escapeOf(c); as != 0 {
			n += putEscape(out[n:], rune(c), as, level)
		} else if c != 0xE2 { // at the end, where no word is left
			out[n] = c
			n++
		} else if size = 3; lineSeparator(b) == 0 {
			n += copy(out[n:], b[:size])
		} else {
			n += putEscape(out[n:], lineSeparator(b), 'u', level)
		}
		b = b[size:]
	}
	return out[:n]
}

// firstEscaped counts the bytes of a little-endian word before the first one that may need an escape: a special one (see
// special), or 0xE2, which begins a line separator. It returns 8 without one.
func firstEscaped(w uint64) int {
	e2 := w ^ 0xE2*ones
	return bits.TrailingZeros64(special(w)|(e2-ones)&^e2&highs) >> 3
}

// escapeOf returns what stands for c behind a backslash: a character, or 'u' for its number. 0 means that c needs no escape.
func escapeOf(c byte) byte {
	const control = "uuuuuuuuutnuuruuuuuuuuuuuuuuuuuu"
	switch {
	case c < ' ':
		return control[c]
	case c == '"', c == '\\':
		return c
	}
	return 0
}

// putEscape writes an escape to out, which has room for 7 bytes, and returns its size. as is from escapeOf.
func putEscape(out []byte, r rune, as byte, level int) int {
	copy(out, `\\\\`) // excess backslashes are overwritten
	n := 1 << (level - 1)
	if rune(as) == r { // a quote or a backslash, which need one themselves in the next round
		n = 1<<level - 1
	}
	out[n] = as
	if n++; as != 'u' {
		return n
	}
	const hex = "0123456789abcdef"
	return n + copy(out[n:], []byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
}

// lineSeparator returns U+2028 or U+2029 if s begins with it, else 0. s begins with a whole character of three bytes.
func lineSeparator(s []byte) rune {
	if s[1] == 0x80 && (s[2] == 0xA8 || s[2] == 0xA9) {
		return 0x2028 + rune(s[2]-0xA8)
	}
	return 0
}

// Room estimates the escaped size of a text, in bytes.
func Room(s string) int { return len(s) + len(s)/8 + 128 }

// AppendNested appends s without quotes for a JSON string within a JSON string: escaped twice in one pass.
func AppendNested(dst []byte, s string) []byte { return appendEscaped(dst, s, 2) }
