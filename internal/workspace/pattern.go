package workspace

import (
	"bytes"
	"strings"
)

// Bounds on the files that hold patterns, so that a hostile one costs little.
const (
	maxIgnoreFile = 1 << 20 // bytes
	maxPatterns   = 10000
)

// A pattern is one line of a .gitignore, as gitignore(5) defines it and git
// itself matches it: byte by byte, so a "?" is one byte. (An oddity of git's is
// left out: there "a**/b" matches "ab" as well.)
type pattern struct {
	negated bool
	dirOnly bool
	// anchored patterns are matched with the whole path relative to the
	// file that holds them, others with the last name alone.
	anchored bool
	segments []segment
}

// A segment is what stands between two slashes of a pattern.
type segment struct {
	anyDepth bool // "**": any number of names
	tokens   []token
}

// A token matches one byte, or with star any number of them.
type token struct {
	star bool
	any  bool // "?"
	b    byte
	set  *[256]bool
}

// parsePatterns reads the lines of an ignore file.
func parsePatterns(data []byte, fold bool) []pattern {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var ps []pattern
	for line := range bytes.Lines(data) {
		s := strings.TrimSuffix(string(line), "\n")
		s = strings.TrimSuffix(s, "\r")
		if p, ok := parsePattern(trimBlanks(s), fold); ok && len(ps) < maxPatterns {
			ps = append(ps, p)
		}
	}
	return ps
}

// trimBlanks removes the blanks at the end that no backslash keeps.
func trimBlanks(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			end = i + 1
		case s[i] != ' ':
			end = i + 1
		}
	}
	return s[:end]
}

func parsePattern(s string, fold bool) (p pattern, ok bool) {
	if s == "" || s[0] == '#' {
		return p, false
	}
	if s[0] == '!' {
		p.negated, s = true, s[1:]
	}
	if strings.HasSuffix(s, "/") {
		p.dirOnly, s = true, s[:len(s)-1]
	}
	if s == "" {
		return p, false
	}
	p.anchored = strings.Contains(s, "/")
	s = strings.TrimPrefix(s, "/")
	if fold {
		s = lowerASCII(s)
	}
	p.segments, ok = parseSegments(s)
	return p, ok
}

func parseSegments(s string) ([]segment, bool) {
	var segs []segment
	cur := segment{}
	start := 0 // of the segment, in s
	flush := func(end int) {
		if raw := s[start:end]; len(raw) >= 2 && strings.Trim(raw, "*") == "" {
			cur = segment{anyDepth: true}
		}
		segs = append(segs, cur)
		cur, start = segment{}, end+1
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '/':
			flush(i)
		case '*':
			if n := len(cur.tokens); n == 0 || !cur.tokens[n-1].star {
				cur.tokens = append(cur.tokens, token{star: true})
			}
		case '?':
			cur.tokens = append(cur.tokens, token{any: true})
		case '[':
			set, n := parseSet(s[i+1:])
			if n < 0 {
				return nil, false
			}
			cur.tokens = append(cur.tokens, token{set: set})
			i += n
		case '\\':
			if i++; i == len(s) {
				return nil, false // a backslash with nothing after it matches nothing
			}
			if s[i] == '/' {
				flush(i)
				continue
			}
			cur.tokens = append(cur.tokens, token{b: s[i]})
		default:
			cur.tokens = append(cur.tokens, token{b: c})
		}
	}
	flush(len(s))
	return segs, true
}

// parseSet reads a bracket expression behind its "[" and returns how many
// bytes it took, -1 when it has no end or names an unknown class.
func parseSet(s string) (set *[256]bool, n int) {
	set = new([256]bool)
	i := 0
	negated := false
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		negated = true
		i++
	}
	prev := -1 // the byte that a "-" would start a range from
	for first := true; ; first = false {
		if i >= len(s) {
			return nil, -1
		}
		c := s[i]
		switch {
		case c == ']' && !first:
			finishSet(set, negated)
			return set, i + 1
		case c == '-' && prev >= 0 && i+1 < len(s) && s[i+1] != ']':
			i++
			hi := s[i]
			if hi == '\\' {
				if i++; i >= len(s) {
					return nil, -1
				}
				hi = s[i]
			}
			for b := prev; b <= int(hi); b++ {
				set[b] = true
			}
			prev = -1
		case c == '[' && i+1 < len(s) && s[i+1] == ':':
			end := strings.IndexByte(s[i+2:], ']')
			if end < 0 {
				return nil, -1
			}
			if end == 0 || s[i+2+end-1] != ':' { // no class after all: a "[" as any other byte
				set['['] = true
				prev = '['
				break
			}
			in, ok := class(s[i+2 : i+2+end-1])
			if !ok {
				return nil, -1
			}
			for b := range set {
				set[b] = set[b] || in(byte(b))
			}
			i += 2 + end
			prev = -1
		default:
			if c == '\\' {
				if i++; i >= len(s) {
					return nil, -1
				}
				c = s[i]
			}
			set[c] = true
			prev = int(c)
		}
		i++
	}
}

// finishSet applies the negation; no set matches a slash.
func finishSet(set *[256]bool, negated bool) {
	if negated {
		for b := range set {
			set[b] = !set[b]
		}
	}
	set['/'] = false
}

// class returns the members of a POSIX character class, in ASCII.
func class(name string) (in func(byte) bool, ok bool) {
	lower := func(b byte) bool { return 'a' <= b && b <= 'z' }
	upper := func(b byte) bool { return 'A' <= b && b <= 'Z' }
	digit := func(b byte) bool { return '0' <= b && b <= '9' }
	alnum := func(b byte) bool { return lower(b) || upper(b) || digit(b) }
	graph := func(b byte) bool { return '!' <= b && b <= '~' }
	switch name {
	case "alnum":
		return alnum, true
	case "alpha":
		return func(b byte) bool { return lower(b) || upper(b) }, true
	case "blank":
		return func(b byte) bool { return b == ' ' || b == '\t' }, true
	case "cntrl":
		return func(b byte) bool { return b < ' ' || b == 127 }, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return func(b byte) bool { return graph(b) || b == ' ' }, true
	case "punct":
		return func(b byte) bool { return graph(b) && !alnum(b) }, true
	case "space":
		return func(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }, true
	case "upper":
		return upper, true
	case "xdigit":
		return func(b byte) bool { return digit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' }, true
	}
	return nil, false
}

// matches tells whether the pattern fits a path given by its names relative to
// the folder of the pattern's file.
func (p *pattern) matches(names []string, isDir bool) bool {
	if p.dirOnly && !isDir || len(names) == 0 {
		return false
	}
	if !p.anchored {
		seg := p.segments[0]
		return seg.anyDepth || matchTokens(seg.tokens, names[len(names)-1])
	}
	return matchSegments(p.segments, names)
}

// matchSegments goes back only to the last "**", which is enough: what an
// earlier one could take, the later one can take too.
func matchSegments(segs []segment, names []string) bool {
	i, j := 0, 0
	backSeg, backName := -1, 0
	for j < len(names) {
		switch {
		case i < len(segs) && segs[i].anyDepth:
			if i == len(segs)-1 {
				return true // at the end: everything inside, and something is left
			}
			backSeg, backName = i, j
			i++
		case i < len(segs) && matchTokens(segs[i].tokens, names[j]):
			i++
			j++
		case backSeg >= 0:
			backName++
			i, j = backSeg+1, backName
		default:
			return false
		}
	}
	return i == len(segs)
}

// matchTokens goes back only to the last star, for the same reason.
func matchTokens(tokens []token, name string) bool {
	i, j := 0, 0
	backToken, backByte := -1, 0
	for j < len(name) {
		switch {
		case i < len(tokens) && tokens[i].star:
			backToken, backByte = i, j
			i++
		case i < len(tokens) && tokens[i].matches(name[j]):
			i++
			j++
		case backToken >= 0:
			backByte++
			i, j = backToken+1, backByte
		default:
			return false
		}
	}
	for i < len(tokens) && tokens[i].star {
		i++
	}
	return i == len(tokens)
}

func (t token) matches(b byte) bool {
	switch {
	case t.any:
		return true
	case t.set != nil:
		return t.set[b]
	}
	return t.b == b
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}
