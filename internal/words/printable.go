// Package words makes text fit for people: untrusted text without terminal control characters, text cut to a length,
// and the name that was probably meant. Every function is pure and safe for concurrent use.
package words

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Hidden reports whether r is invisible: control characters (except line breaks and tabs), direction overrides,
// zero-width and tag characters.
func Hidden(r rune) bool {
	if r == '\n' || r == '\t' || r == '\u200d' || r == '\u200c' { // joiners: emoji, Persian and Indic text need them
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == 0x115F || r == 0x3164
}

// Printable makes untrusted text safe for one line of a terminal. Control characters, escape sequences, line breaks
// and bidirectional overrides become visible escapes such as \u001b, a tab becomes a blank, and bytes that are not
// UTF-8 become U+FFFD. Everything else is unchanged.
func Printable(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, func(r rune) bool { return r == '\n' || r == '\t' || Hidden(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteByte(' ')
		case Hidden(r) && r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		case Hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PrintableLines is Printable for several lines: line breaks and tabs stay.
func PrintableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j, cell := range cells {
			cells[j] = Printable(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// EscapeJSON escapes control and invisible characters in a JSON text. Its meaning does not change, because JSON has
// such characters only in strings.
func EscapeJSON(text string) string {
	if strings.IndexFunc(text, Hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch hi, lo := utf16.EncodeRune(r); {
		case !Hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
