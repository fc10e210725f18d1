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
	short := escapes[level-1][:256]
	out, n := dst[:cap(dst)], len(dst)
	for i := 0; i < len(b); {
		if len(out)-n < 16 { // a step writes a word of 8 bytes, and then an escape of at most 7
			out = slices.Grow(out[:n], len(b)-i+(len(b)-i)/8+16)
			out = out[:cap(out)]
		}
		if len(b)-i >= 8 {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(out[n:], w) // excess bytes are overwritten
			found := escaped(w)
			if found == 0 { // by a branch, since counting first would have each word wait for the one before
				i, n = i+8, n+8
				continue
			}
			few := bits.TrailingZeros64(found) >> 3
			i, n = i+few, n+few
		}
		e := short[b[i]]
		for e.size != 0 && len(out)-n >= 11 { // several, as at the beginning of most lines
			binary.LittleEndian.PutUint32(out[n:], e.word) // excess bytes are overwritten
			n += e.size
			if i++; i == len(b) {
				return out[:n]
			}
			e = short[b[i]]
		}
		switch c := b[i]; {
		case e.size != 0: // for want of room
		case c < ' ':
			n += putNumber(out[n:], rune(c), level)
			i++
		case c == 0xE2 && lineSeparator(b[i:]) != 0:
			n += putNumber(out[n:], lineSeparator(b[i:]), level)
			i += 3
		default: // near the end, where no word is left, or a character that begins like a line separator
			out[n] = c
			n++
			i++
		}
	}
	return out[:n]
}

// escaped is special that also finds 0xE2, which begins a line separator.
func escaped(w uint64) uint64 {
	e2 := w ^ 0xE2*ones
	return special(w) | (e2-ones)&^e2&highs
}

// An escape is what stands for one character: at most four bytes, as a little-endian word.
type escape struct {
	word uint32
	size int
}

// escapes are the short escapes by character, once and twice escaped. Other control characters have none.
var escapes = [2][]escape{ //nolint:gochecknoglobals // constant
	{
		'\n': {'\\' | 'n'<<8, 2}, '\t': {'\\' | 't'<<8, 2}, '\r': {'\\' | 'r'<<8, 2},
		'"': {'\\' | '"'<<8, 2}, '\\': {'\\' | '\\'<<8, 2}, 255: {},
	},
	{
		'\n': {'\\' | '\\'<<8 | 'n'<<16, 3}, '\t': {'\\' | '\\'<<8 | 't'<<16, 3}, '\r': {'\\' | '\\'<<8 | 'r'<<16, 3},
		'"': {'\\' | '\\'<<8 | '\\'<<16 | '"'<<24, 4}, '\\': {'\\' | '\\'<<8 | '\\'<<16 | '\\'<<24, 4}, 255: {},
	},
}

// putNumber writes the escape of a character by its number to out, which has room for 7 bytes, and returns its size.
func putNumber(out []byte, r rune, level int) int {
	const hex = "0123456789abcdef"
	n := copy(out, `\\`[:level])
	return n + copy(out[n:], []byte{'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
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
