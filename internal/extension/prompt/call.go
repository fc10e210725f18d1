package prompt

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/words"
)

// A Call is one tool call as a model wrote it: name(arg="…").
type Call struct {
	// Name is the tool's name, with the extension and a dot in front if the model wrote them.
	Name string
	// Args are in the order of the text. Their names are unique.
	Args []Arg
}

// An Arg is one named argument.
type Arg struct {
	Name string
	// Value is a string, json.Number, bool, nil, []any or map[string]any of such values.
	Value any
}

// Map returns the arguments by name.
func (c *Call) Map() map[string]any {
	m := make(map[string]any, len(c.Args))
	for _, a := range c.Args {
		m[a.Name] = a.Value
	}
	return m
}

// A SyntaxError says where a text stops being a call, and what is expected there.
type SyntaxError struct {
	// Offset is in bytes from the beginning of the whole text; Line and Column, in characters, count from 1.
	Offset, Line, Column int
	// Expected is what should be there, Found what is there, in words.
	Expected, Found string
}

// Error returns the place, what was expected and what was found.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: expected %s, found %s", e.Line, e.Column, e.Expected, e.Found)
}

// Bounds of one call.
const (
	maxCallDepth = 64
	maxCallArgs  = 256
)

// ParseCall parses a text that is exactly one call. The error is a *SyntaxError.
func ParseCall(text string) (*Call, error) {
	p := &callParser{text: text}
	c, err := p.parse()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// callParser reads one call by recursive descent. A syntax error is a panic, which parse recovers.
type callParser struct {
	text  string
	pos   int
	depth int
}

func (p *callParser) parse() (c *Call, err *SyntaxError) {
	defer func() {
		if r := recover(); r != nil {
			e, ours := r.(*SyntaxError)
			if !ours {
				panic(r)
			}
			c, err = nil, e
		}
	}()
	p.space()
	c = &Call{Name: p.name()}
	p.space()
	p.expect('(', `"(" after the name of the tool`)
	for p.space(); p.peek() != ')'; p.space() {
		p.arg(c)
		p.space()
		if p.peek() != ',' {
			break
		}
		p.pos++
	}
	p.expect(')', `"," or ")"`)
	p.space()
	if p.peek() == ';' {
		p.pos++
		p.space()
	}
	if p.pos < len(p.text) {
		p.fail(p.pos, "the end: one call in a block")
	}
	return c, nil
}

func (p *callParser) arg(c *Call) {
	start := p.pos
	if !wordStart(p.peek()) {
		p.fail(start, `the name of an argument, as in name(argument="value")`)
	}
	name := p.word()
	p.space()
	if b := p.peek(); b != '=' && b != ':' {
		p.fail(p.pos, fmt.Sprintf(`"=" after the argument %q`, name))
	}
	p.pos++
	for _, a := range c.Args {
		if a.Name == name {
			p.fail(start, fmt.Sprintf("another argument: %q has a value already", name))
		}
	}
	if len(c.Args) == maxCallArgs {
		p.fail(start, fmt.Sprintf("at most %d arguments", maxCallArgs))
	}
	p.space()
	c.Args = append(c.Args, Arg{name, p.value()})
}

// name reads tool or extension.tool. An extension may begin with a digit.
func (p *callParser) name() string {
	start := p.pos
	if b := p.peek(); !wordStart(b) && (b < '0' || b > '9') {
		p.fail(start, "the name of a tool")
	}
	p.word()
	if p.peek() == '.' {
		p.pos++
		if !wordStart(p.peek()) {
			p.fail(p.pos, "the name of a tool after the dot")
		}
		p.word()
	}
	return p.text[start:p.pos]
}

func wordStart(b byte) bool { return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

// word reads letters, digits, _ and -.
func (p *callParser) word() string {
	start := p.pos
	for p.pos < len(p.text) {
		if b := p.text[p.pos]; !wordStart(b) && b != '-' && (b < '0' || b > '9') {
			break
		}
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *callParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *callParser) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *callParser) expect(b byte, expected string) {
	if p.pos == len(p.text) || p.text[p.pos] != b {
		p.fail(p.pos, expected)
	}
	p.pos++
}

// fail reports what is expected at an offset.
func (p *callParser) fail(at int, expected string) {
	line, column := place(p.text[:at], 1, 1)
	panic(&SyntaxError{Offset: at, Line: line, Column: column, Expected: expected, Found: found(p.text[at:])})
}

// found describes the beginning of a text.
func found(rest string) string {
	if rest == "" {
		return "the end"
	}
	if r, _ := utf8.DecodeRuneInString(rest); r == '\n' || r == '\r' {
		return "the end of the line"
	}
	end := strings.IndexAny(rest, " \t\r\n,)]}")
	switch end {
	case -1:
		end = len(rest)
	case 0:
		end = 1
	}
	return strconv.Quote(strings.ToValidUTF8(words.Shorten(rest[:end], 24), "\uFFFD"))
}

// place returns the line and column at the end of text, given those at its beginning.
func place(text string, line, column int) (int, int) {
	for i := range len(text) {
		switch b := text[i]; {
		case b == '\n':
			line, column = line+1, 1
		case b < 0x80 || b >= 0xC0: // the first byte of a character
			column++
		}
	}
	return line, column
}

// value reads a value. It also accepts other languages' names for true, false and null.
func (p *callParser) value() any {
	switch b := p.peek(); {
	case b == '"' || b == '\'':
		return p.str()
	case b == '[':
		return p.nested(func() any { return p.array() })
	case b == '{':
		return p.nested(func() any { return p.object() })
	case b == '-' || b == '+' || b == '.' || b >= '0' && b <= '9':
		return p.number()
	case wordStart(b):
		start := p.pos
		switch p.word() {
		case "true", "True":
			return true
		case "false", "False":
			return false
		case "null", "None":
			return nil
		}
		p.fail(start, `a value: a "text" in quotes, a number, true, false, null, […] or {…}`)
	}
	p.fail(p.pos, `a value: a "text", a number, true, false, null, […] or {…}`)
	return nil
}

func (p *callParser) nested(read func() any) any {
	if p.depth++; p.depth > maxCallDepth {
		p.fail(p.pos, fmt.Sprintf("at most %d lists and objects inside one another", maxCallDepth))
	}
	v := read()
	p.depth--
	return v
}

func (p *callParser) array() []any {
	p.pos++
	list := []any{}
	for p.space(); p.peek() != ']'; p.space() {
		list = append(list, p.value())
		p.space()
		if p.peek() != ',' {
			break
		}
		p.pos++
	}
	p.expect(']', `"," or "]"`)
	return list
}

func (p *callParser) object() map[string]any {
	p.pos++
	object := map[string]any{}
	for p.space(); p.peek() != '}'; p.space() {
		start := p.pos
		if b := p.peek(); b != '"' && b != '\'' {
			p.fail(start, `a name in quotes, as in {"name": value}`)
		}
		name := p.str()
		if _, twice := object[name]; twice {
			p.fail(start, fmt.Sprintf("another name: %q has a value already", words.Shorten(name, 40)))
		}
		p.space()
		p.expect(':', `":" after the name`)
		p.space()
		object[name] = p.value()
		p.space()
		if p.peek() != ',' {
			break
		}
		p.pos++
	}
	p.expect('}', `"," or "}"`)
	return object
}

// number reads a JSON number.
func (p *callParser) number() json.Number {
	start := p.pos
	for p.pos < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.pos]) >= 0 {
		p.pos++
	}
	text := p.text[start:p.pos]
	if !json.Valid([]byte(text)) || wordStart(p.peek()) {
		p.fail(start, "a number such as 12, -3.5 or 1e6")
	}
	return json.Number(text)
}

// str reads a string in single, double or triple quotes, with the escapes of JSON and Python.
func (p *callParser) str() string {
	start, quote := p.pos, p.text[p.pos:p.pos+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(p.text[p.pos:], triple) {
		quote = triple
	}
	p.pos += len(quote)
	var b strings.Builder
	for {
		switch {
		case p.pos == len(p.text):
			p.fail(start, "a closing "+quote+" for this text")
		case strings.HasPrefix(p.text[p.pos:], quote):
			p.pos += len(quote)
			return b.String()
		case p.text[p.pos] == '\\':
			p.escape(&b)
		default:
			r, size := utf8.DecodeRuneInString(p.text[p.pos:])
			b.WriteRune(r)
			p.pos += size
		}
	}
}

func (p *callParser) escape(b *strings.Builder) {
	start := p.pos
	p.pos++
	c := p.peek()
	p.pos++
	const known, means = "\"'\\/bfnrt0\n", "\"'\\/\b\f\n\r\t\x00"
	switch i := strings.IndexByte(known, c); {
	case start+1 == len(p.text):
		p.pos = start + 1 // the text ends here, which str reports
	case c == '\n': // the line continues
	case i >= 0:
		b.WriteByte(means[i])
	case c == 'x':
		b.WriteRune(p.hex(start, 2))
	case c == 'U':
		b.WriteRune(p.hex(start, 8))
	case c == 'u':
		r := p.hex(start, 4)
		if utf16.IsSurrogate(r) {
			r = p.lowHalf(start, r)
		}
		b.WriteRune(r)
	default:
		p.fail(start, `an escape: \n \t \r \" \' \\ \/ \b \f \0 \x41 \u0041 (write \\ for a backslash)`)
	}
}

// lowHalf reads the second half of a surrogate pair.
func (p *callParser) lowHalf(start int, high rune) rune {
	if strings.HasPrefix(p.text[p.pos:], `\u`) {
		p.pos += 2
		if r := utf16.DecodeRune(high, p.hex(start, 4)); r != utf8.RuneError {
			return r
		}
	}
	p.fail(start, "both halves of the character, such as \\ud83d\\ude00")
	return 0
}

func (p *callParser) hex(start, digits int) rune {
	end := p.pos + digits
	if end <= len(p.text) {
		if v, err := strconv.ParseUint(p.text[p.pos:end], 16, 32); err == nil && v <= utf8.MaxRune {
			p.pos = end
			return rune(v)
		}
	}
	p.fail(start, fmt.Sprintf("%d hexadecimal digits after the escape", digits))
	return 0
}
