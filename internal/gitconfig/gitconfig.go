// Package gitconfig reads git's configuration files by git's own rules, without running git. A program can learn what
// an untrusted repository's settings would make git run.
package gitconfig

import (
	"fmt"
	"strings"
)

// A Setting is one value of a configuration file.
type Setting struct {
	// Key is "section.name" or "section.subsection.name". Section and name are in lower case; the subsection keeps
	// its case.
	Key string
	// Value is the value with quotes and escapes resolved. A name without "=" has the value "true". Blanks inside the
	// value are kept; git before 2.45 reads each tab as a space.
	Value string
}

// Parse reads the text of a configuration file. It returns the settings before the first syntax error, and that
// error: git itself stops there.
func Parse(data []byte) ([]Setting, error) {
	p := &parser{rest: strings.TrimPrefix(string(data), "\ufeff"), line: 1}
	err := p.file()
	if err != nil {
		err = fmt.Errorf("line %d: %w", p.line, err)
	}
	return p.all, err
}

type parser struct {
	rest    string
	line    int
	section string // with the subsection
	all     []Setting
}

// end is what next returns at the end of the file.
const end = -1

// next returns the next byte. CR LF counts as LF.
func (p *parser) next() int {
	if p.rest == "" {
		return end
	}
	if strings.HasPrefix(p.rest, "\r\n") {
		p.rest = p.rest[1:]
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	if c == '\n' {
		p.line++
	}
	return int(c)
}

func (p *parser) file() error {
	for {
		switch c := p.next(); {
		case c == end:
			return nil
		case isSpace(c):
		case c == '#' || c == ';':
			p.comment()
		case c == '[':
			if err := p.header(); err != nil {
				return err
			}
		case isLetter(c):
			if err := p.setting(c); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q begins neither a section nor a name", rune(c))
		}
	}
}

// comment skips the rest of a line.
func (p *parser) comment() {
	for c := p.next(); c != '\n' && c != end; c = p.next() {
	}
}

// header reads a section's name after the "[".
func (p *parser) header() error {
	var name []byte
	for {
		c := p.next()
		switch {
		case c == ']' && len(name) > 0:
			p.section = string(name)
			return nil
		case isSpace(c) && c != '\n':
			sub, err := p.subsection()
			p.section = string(name) + "." + sub
			return err
		case isKey(c) || c == '.':
			name = append(name, lower(c))
		default:
			return fmt.Errorf("a section's name is not ended")
		}
	}
}

// subsection reads `"name"]`.
func (p *parser) subsection() (string, error) {
	c := p.next()
	for isSpace(c) && c != '\n' {
		c = p.next()
	}
	if c != '"' {
		return "", fmt.Errorf("a subsection is not quoted")
	}
	var name []byte
	for {
		c := p.next()
		if c == '\\' {
			if c = p.next(); c == '"' {
				name = append(name, '"')
				continue
			}
		}
		switch c {
		case '\n', end:
			return "", fmt.Errorf("a subsection is not ended")
		case '"':
			if p.next() != ']' {
				return "", fmt.Errorf("a section's name is not ended")
			}
			return string(name), nil
		}
		name = append(name, byte(c))
	}
}

// setting reads a name that begins with c, and its value.
func (p *parser) setting(c int) error {
	name := []byte{lower(c)}
	for c = p.next(); isKey(c); c = p.next() {
		name = append(name, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	value := "true"
	if c != '\n' && c != end {
		if c != '=' {
			return fmt.Errorf("there is no %q after the name %q", '=', name)
		}
		var err error
		if value, err = p.value(); err != nil {
			return err
		}
	}
	key := string(name)
	if p.section != "" {
		key = p.section + "." + key
	}
	p.all = append(p.all, Setting{key, value})
	return nil
}

// value reads the value after "=", to the end of the line, including lines joined by a backslash.
func (p *parser) value() (string, error) {
	var value []byte
	quoted, keep := false, 0 // keep is the length without trailing blanks
	for {
		c := p.next()
		switch {
		case c == '\n' || c == end:
			if quoted {
				return "", fmt.Errorf("a quoted value is not ended")
			}
			text, _, _ := strings.Cut(string(value[:keep]), "\x00") // ends at a zero byte, as in C
			return text, nil
		case isSpace(c) && !quoted:
			if len(value) > 0 {
				value = append(value, byte(c))
			}
			continue
		case (c == ';' || c == '#') && !quoted:
			p.comment()
			text, _, _ := strings.Cut(string(value[:keep]), "\x00")
			return text, nil
		case c == '\\':
			escaped, ok := p.escape()
			if !ok {
				return "", fmt.Errorf("an escape that git does not know")
			}
			value = append(value, escaped...)
		case c == '"':
			quoted = !quoted
		default:
			value = append(value, byte(c))
		}
		keep = len(value)
	}
}

// escape reads what follows a backslash.
func (p *parser) escape() (string, bool) {
	switch c := p.next(); c {
	case '\n':
		return "", true
	case 't':
		return "\t", true
	case 'b':
		return "\b", true
	case 'n':
		return "\n", true
	case '\\', '"':
		return string(rune(c)), true
	}
	return "", false
}

func isSpace(c int) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isLetter(c int) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isKey(c int) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c int) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return byte(c)
}
