package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a quoted string. A string without escapes, the usual case, is copied once.
func (p *parser) str() string {
	quote, start := p.data[p.pos], p.pos
	p.pos++
	from := p.pos
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		if c == quote || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
		p.pos++
	}
	var out strings.Builder
	out.Write(p.data[from:p.pos])
	for {
		if p.pos == len(p.data) || p.data[p.pos] == '\n' {
			p.fail(start, "this string is never closed", `add the missing " (a line break in a string is written \n)`)
		}
		c := p.data[p.pos]
		switch {
		case c == quote:
			p.pos++
			if quote == '\'' {
				p.report(start, p.pos, "a string in single quotes", "use double quotes")
			}
			return out.String()
		case c == '\\':
			p.escape(&out)
		case c < ' ':
			p.report(p.pos, p.pos+1, fmt.Sprintf("a control character (U+%04X) in a string", c), fmt.Sprintf(`write it as \u%04x`, c))
			out.WriteByte(c)
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.data[p.pos:])
			if r == utf8.RuneError && size == 1 {
				p.report(p.pos, p.pos+1, fmt.Sprintf("the byte %#02x is not UTF-8", c), "save the file as UTF-8")
			}
			out.WriteRune(r)
			p.pos += size
		}
	}
}

func (p *parser) escape(out *strings.Builder) {
	start := p.pos
	p.pos++
	c := p.peek()
	p.pos++
	if i := strings.IndexByte(`"\/bfnrt`, c); c != 0 && i >= 0 {
		out.WriteByte("\"\\/\b\f\n\r\t"[i])
		return
	}
	if c != 'u' {
		p.pos = min(p.pos, len(p.data))
		p.report(start, p.pos, "an escape that JSON does not know", `a backslash is written \\; in paths use /`)
		if c >= ' ' && c < utf8.RuneSelf {
			out.WriteByte(c)
		} else {
			p.pos = start + 1 // not part of the escape: the loop in str handles it
		}
		return
	}
	r, ok := p.hex4()
	if ok && utf16.IsSurrogate(r) {
		ok = false
		if p.peek() == '\\' && p.pos+1 < len(p.data) && p.data[p.pos+1] == 'u' {
			back := p.pos
			p.pos += 2
			low, okLow := p.hex4()
			if full := utf16.DecodeRune(r, low); okLow && full != utf8.RuneError {
				r, ok = full, true
			} else {
				p.pos = back
			}
		}
	}
	if !ok {
		p.report(start, p.pos, `not a character: \u needs four hex digits, and halves of a pair stand together`, "correct the escape or write the character itself")
		r = utf8.RuneError
	}
	out.WriteRune(r)
}

func (p *parser) hex4() (rune, bool) {
	if p.pos+4 > len(p.data) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(p.data[p.pos:p.pos+4]), 16, 16)
	if err != nil {
		return 0, false
	}
	p.pos += 4
	return rune(v), true
}
