package manifest

import (
	"bytes"
	"fmt"
	"strings"
)

// Bounds of the parser. The CLI has none; these are far above any real manifest.
const (
	maxBytes  = 1 << 20 // of a manifest
	maxDepth  = 64      // of nesting
	maxValues = 50_000  // in one manifest
)

type kind byte

const (
	kindObject kind = iota
	kindArray
	kindString
	kindNumber
	kindBool
	kindNull
)

// String returns the kind as messages name it, with its article.
func (k kind) String() string {
	return [...]string{"an object {…}", "a list […]", "a string", "a number", "true or false", "null"}[k]
}

// node is a JSON value and its place in the file; start and end are byte offsets.
type node struct {
	kind       kind
	start, end int
	text       string // a string's value; the literal of a number, true or false
	members    []member
	items      []*node
}

// member is one name and value of an object.
type member struct {
	name       string
	start, end int // of the name, with its quotes
	value      *node
}

// get finds a member by its exact name. Of duplicates it returns the last, as JSON.parse does.
func (n *node) get(name string) *node {
	if n == nil || n.kind != kindObject {
		return nil
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// parser reads strict JSON as JSON.parse does. It reports common mistakes (comments, trailing or missing commas,
// single quotes, bare names) and continues, so that one run shows all of them. An error it cannot skip ends it by a
// panic of type stop, which parse catches.
type parser struct {
	data   []byte
	pos    int
	depth  int
	values int
	report func(start, end int, message, fix string)
}

type stop struct{}

// parse reads data into a tree. complete is false if the text could not be read to its end; the tree then holds what
// came before.
func parse(data []byte, report func(start, end int, message, fix string)) (root *node, complete bool) {
	p := &parser{data: data, report: report}
	root = &node{kind: kindNull}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stop); !ok {
				panic(r)
			}
		}
	}()
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		p.report(0, 3, "the file begins with a byte order mark, which Gemini CLI cannot read", "save it as UTF-8 without BOM")
		p.pos = 3
	}
	p.space()
	if p.pos == len(p.data) {
		p.fail(p.pos, "the file is empty", `begin with {"name": "…", "version": "1.0.0"}`)
	}
	p.value(root)
	p.space()
	if p.pos < len(p.data) {
		p.report(p.pos, p.restOfLine(), "text after the end of the JSON value", "remove it, or a closing bracket too many before it")
	}
	return root, true
}

// fail reports an error and stops the parser.
func (p *parser) fail(at int, message, fix string) {
	p.report(at, min(p.restOfWord(at), len(p.data)), message, fix)
	panic(stop{})
}

func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

// space skips whitespace, and reports and skips comments.
func (p *parser) space() {
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.pos++
		case c == '/' && p.pos+1 < len(p.data) && (p.data[p.pos+1] == '/' || p.data[p.pos+1] == '*'):
			p.comment()
		default:
			return
		}
	}
}

func (p *parser) comment() {
	start := p.pos
	if p.data[p.pos+1] == '/' {
		p.pos = p.restOfLine()
	} else if i := bytes.Index(p.data[p.pos+2:], []byte("*/")); i >= 0 {
		p.pos += i + 4
	} else {
		p.fail(start, "a comment without its end", "remove the comment: JSON has none")
	}
	p.report(start, p.pos, "a comment: JSON has none, and Gemini CLI does not load the file", "remove it")
}

// value reads one value into n. n is already part of the tree, so a fatal error later does not lose it.
func (p *parser) value(n *node) {
	p.values++
	if p.values > maxValues {
		p.fail(p.pos, fmt.Sprintf("more than %d values", maxValues), "make the manifest smaller")
	}
	n.start = p.pos
	switch c := p.peek(); {
	case c == '{':
		n.kind = kindObject
		p.nested(func() { p.object(n) })
	case c == '[':
		n.kind = kindArray
		p.nested(func() { p.array(n) })
	case c == '"' || c == '\'':
		n.kind, n.text = kindString, p.str()
	case c == '-' || c >= '0' && c <= '9':
		n.kind, n.text = kindNumber, p.number()
	default:
		p.word(n)
	}
	n.end = p.pos
}

func (p *parser) nested(read func()) {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.pos, fmt.Sprintf("nested more than %d deep", maxDepth), "make the manifest flatter")
	}
	read()
	p.depth--
}

func (p *parser) word(n *node) {
	end := p.restOfWord(p.pos)
	switch w := string(p.data[p.pos:end]); w {
	case "true", "false":
		n.kind, n.text = kindBool, w
	case "null":
		n.kind = kindNull
	case "":
		p.fail(p.pos, "a value is missing here", "write a value, or remove the name or comma before it")
	default:
		p.fail(p.pos, "not a JSON value", "a text stands in double quotes; other values are numbers, true, false, null, […] and {…}")
	}
	p.pos = end
}

func (p *parser) object(n *node) {
	open := p.pos
	p.pos++
	for {
		p.space()
		switch c := p.peek(); {
		case c == '}':
			p.pos++
			return
		case p.pos == len(p.data):
			p.fail(open, "this { is never closed", "add the missing }")
		case c == ']':
			p.report(p.pos, p.pos+1, "a } is missing before this ]", "add it, or remove the ]")
			return
		case c == ',':
			p.report(p.pos, p.pos+1, "a comma without a value before it", "remove it")
			p.pos++
			continue
		}
		p.member(n)
		p.separator('}')
	}
}

func (p *parser) member(n *node) {
	m := member{start: p.pos, value: &node{kind: kindNull}}
	if c := p.peek(); c == '"' || c == '\'' {
		m.name = p.str()
	} else if end := p.restOfWord(p.pos); end > p.pos {
		m.name = string(p.data[p.pos:end])
		p.report(p.pos, end, "a name without quotes", fmt.Sprintf("write %q", m.name))
		p.pos = end
	} else {
		p.fail(p.pos, "a name is expected here", `write "name": value`)
	}
	m.end = p.pos
	p.space()
	if p.peek() != ':' {
		p.fail(p.pos, fmt.Sprintf("a colon is missing after the name %q", m.name), `write "name": value`)
	}
	p.pos++
	p.space()
	m.value.start, m.value.end = p.pos, p.pos
	n.members = append(n.members, m)
	p.value(m.value)
}

func (p *parser) array(n *node) {
	open := p.pos
	p.pos++
	for {
		p.space()
		switch c := p.peek(); {
		case c == ']':
			p.pos++
			return
		case p.pos == len(p.data):
			p.fail(open, "this [ is never closed", "add the missing ]")
		case c == '}':
			p.report(p.pos, p.pos+1, "a ] is missing before this }", "add it, or remove the }")
			return
		case c == ',':
			p.report(p.pos, p.pos+1, "a comma without a value before it", "remove it")
			p.pos++
			continue
		}
		item := &node{kind: kindNull, start: p.pos, end: p.pos}
		n.items = append(n.items, item)
		p.value(item)
		p.separator(']')
	}
}

// separator reads the comma after a value. It reports a missing or an extra one.
func (p *parser) separator(closing byte) {
	after := p.pos
	p.space()
	switch c := p.peek(); {
	case c == ',':
		comma := p.pos
		p.pos++
		p.space()
		if p.peek() == closing {
			p.report(comma, comma+1, "a comma after the last value", "remove it")
		}
	case c == '}' || c == ']' || p.pos == len(p.data): // the caller handles it
	case c == '"' || c == '{' || c == '[':
		p.report(after, after, "a comma is missing here", "add it")
	default:
		p.fail(p.pos, fmt.Sprintf("expected a comma or %c", closing), "add it, or remove what stands here")
	}
}

func (p *parser) number() string {
	start := p.pos
	end := start
	for end < len(p.data) && strings.IndexByte("+-.0123456789eE", p.data[end]) >= 0 {
		end++
	}
	text := string(p.data[start:end])
	if !validNumber(text) {
		p.fail(start, "not a JSON number", "write it like 12, -3.5 or 1e6, or put it in double quotes")
	}
	p.pos = end
	return text
}

// validNumber checks JSON's grammar: -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
func validNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole := digits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return false
	}
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		d := digits(s[1:])
		if d == 0 {
			return false
		}
		s = s[1+d:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		d := digits(s)
		return d > 0 && d == len(s)
	}
	return s == ""
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// restOfLine returns the offset of the end of the current line.
func (p *parser) restOfLine() int {
	end := p.pos
	for end < len(p.data) && p.data[end] != '\n' {
		end++
	}
	return end
}

// restOfWord returns the offset at which a run of characters without whitespace or JSON punctuation ends.
func (p *parser) restOfWord(at int) int {
	for at < len(p.data) && p.data[at] > ' ' && strings.IndexByte(`{}[],:"'/`, p.data[at]) < 0 {
		at++
	}
	return at
}
