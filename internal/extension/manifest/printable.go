package manifest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// hidden says whether r is a character that is not seen: controls (but for
// line breaks and tabs), direction overrides, zero-width and tag characters.
func hidden(r rune) bool {
	if r == '\n' || r == '\t' || r == '\u200d' || r == '\u200c' { // joiners: emoji, Persian and Indic text need them
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == 0x115F || r == 0x3164
}

// Printable makes foreign text safe for one line of a terminal: control
// characters, escape sequences, line breaks and bidirectional overrides become
// visible escapes such as \u001b. Everything else stays as it is.
func Printable(s string) string {
	unsafe := func(r rune) bool { return r == '\n' || r == '\t' || hidden(r) }
	if strings.IndexFunc(s, unsafe) < 0 {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteByte(' ')
		case hidden(r) && r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// EscapeJSON replaces in a JSON text the characters that a terminal obeys or
// nobody sees by escapes; the text means the same. JSON has them in strings only.
func EscapeJSON(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch hi, lo := utf16.EncodeRune(r); {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
