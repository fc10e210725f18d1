package workspace

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds on files with patterns. A file beyond them has a problem: see ignoreFile.problem.
const (
	maxIgnoreFile = 1 << 20 // bytes
	maxPatterns   = 10000
	maxPattern    = 2 * (MaxPath + 1) // bytes: room for the longest path with every byte escaped
)

// An effort bounds what patterns may cost. Matching spends it step by step; when nothing is left, no pattern fits any
// more. nil is unbounded.
type effort struct {
	left  int   // steps
	bytes int64 // bytes of ignore files that may still be read
}

// spend takes steps, and says whether enough were left.
func (e *effort) spend(steps int) bool {
	if e == nil {
		return true
	}
	e.left -= steps
	return e.left >= 0
}

// read takes bytes, and says whether enough were left.
func (e *effort) read(bytes int64) bool {
	if e == nil {
		return true
	}
	e.bytes -= bytes
	return e.bytes >= 0
}

func (e *effort) exhausted() bool { return e != nil && e.left < 0 }

// A pattern is one line of a .gitignore, as gitignore(5) defines it. It is matched byte
// by byte, as git does, so a "?" is one byte. One oddity of git's is left out: there
// "a**/b" matches "ab" as well.
type pattern struct {
	negated bool
	dirOnly bool
	// anchored patterns are matched with the whole path relative to their file's folder,
	// other patterns only with the last name.
	anchored bool
	// plain is the only path that fits, or the only name. It has no segments then: they take sixteen times the
	// memory of what somebody has written who wrote nothing but slashes.
	plain    string
	segments []segment
}

// A segment is the part of a pattern between two slashes.
type segment struct {
	anyDepth bool   // "**": any number of names
	literal  string // the only name that fits, unless there is a glob
	glob     *glob
}

// A glob is a segment with wildcards.
type glob struct {
	tokens []token
	sets   []byteSet // that tokens refer to
}

// A token matches one byte; a star matches any number.
type token struct {
	kind tokenKind
	b    byte   // for one
	set  uint16 // for oneOf: an index of sets
}

type tokenKind uint8

const (
	one     tokenKind = iota // one byte
	any1                     // "?"
	anyRune                  // a character of any number of bytes
	oneOf                    // a bracket expression
	star
)

// A byteSet holds bytes, a bit each.
type byteSet [4]uint64

// add puts the bytes from lo to hi into the set; no byte when hi is smaller.
func (s *byteSet) add(lo, hi byte) {
	for w := int(lo >> 6); lo <= hi && w <= int(hi>>6); w++ {
		bits := ^uint64(0)
		if w == int(lo>>6) {
			bits &= ^uint64(0) << (lo & 63)
		}
		if w == int(hi>>6) {
			bits &= ^uint64(0) >> (63 - hi&63)
		}
		s[w] |= bits
	}
}

func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 == 1 }

// parsePatterns reads the lines of an ignore file. It stops one pattern beyond the bound, so that the caller can see it.
func parsePatterns(data []byte, fold bool) []pattern {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var ps []pattern
	for line := range bytes.Lines(data) {
		s := strings.TrimSuffix(string(line), "\n")
		s = strings.TrimSuffix(s, "\r")
		if len(s) > maxPattern || len(ps) > maxPatterns {
			continue
		}
		if p, ok := parsePattern(trimBlanks(s), fold); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

// trimBlanks removes trailing blanks, except behind a backslash.
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
	if p.plain, ok = unescape(s); ok {
		return p, true
	}
	p.segments, ok = parseSegments(s)
	return p, ok
}

// unescape returns a pattern without wildcards as the path or name that it means. A trailing backslash is not ok.
func unescape(s string) (plain string, ok bool) {
	if !strings.ContainsAny(s, `*?[\`) {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		b = append(b, s[i])
	}
	return string(b), true
}

func parseSegments(s string) ([]segment, bool) {
	segs := make([]segment, 0, 1+strings.Count(s, "/")) // a hostile file has half a million in all: none is copied
	tokens := make([]token, 0, len(s))
	sets := make([]byteSet, 0, strings.Count(s, "["))
	wild := false
	start := 0 // of the segment, in s
	flush := func(end int) {
		var seg segment
		switch raw := s[start:end]; {
		case len(raw) >= 2 && strings.Trim(raw, "*") == "":
			seg = segment{anyDepth: true}
		case wild:
			seg.glob = &glob{slices.Clone(tokens), slices.Clone(sets)}
		case !strings.Contains(raw, "\\"):
			seg.literal = raw
		default:
			name := make([]byte, len(tokens))
			for i, t := range tokens {
				name[i] = t.b
			}
			seg.literal = string(name)
		}
		if n := len(segs); !seg.anyDepth || n == 0 || !segs[n-1].anyDepth { // two in a row mean the same as one
			segs = append(segs, seg)
		}
		tokens, sets, wild, start = tokens[:0], sets[:0], false, end+1
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '/':
			flush(i)
		case '*':
			if n := len(tokens); n == 0 || tokens[n-1].kind != star {
				tokens = append(tokens, token{kind: star})
			}
			wild = true
		case '?':
			tokens = append(tokens, token{kind: any1})
			wild = true
		case '[':
			set, n := parseSet(s[i+1:])
			if n < 0 {
				return nil, false
			}
			tokens = append(tokens, token{kind: oneOf, set: uint16(len(sets))}) // maxPattern keeps it small
			sets = append(sets, set)
			wild = true
			i += n
		case '\\':
			if i++; i == len(s) {
				return nil, false // a trailing backslash matches nothing
			}
			if s[i] == '/' {
				flush(i)
				continue
			}
			tokens = append(tokens, token{b: s[i]})
		default:
			tokens = append(tokens, token{b: c})
		}
	}
	flush(len(s))
	return segs, true
}

// parseSet reads a bracket expression behind its "[" and returns how many bytes it took;
// -1 when it has no end or names an unknown class.
func parseSet(s string) (set byteSet, n int) {
	i := 0
	negated := false
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		negated = true
		i++
	}
	prev := -1    // the byte that a "-" would start a range from
	closing := -1 // where the next "]" is, as far as that is known
	for first := true; ; first = false {
		if i >= len(s) {
			return set, -1
		}
		c := s[i]
		switch {
		case c == ']' && !first:
			finishSet(&set, negated)
			return set, i + 1
		case c == '-' && prev >= 0 && i+1 < len(s) && s[i+1] != ']':
			i++
			hi := s[i]
			if hi == '\\' {
				if i++; i >= len(s) {
					return set, -1
				}
				hi = s[i]
			}
			set.add(byte(prev), hi)
			prev = -1
		case c == '[' && i+1 < len(s) && s[i+1] == ':':
			if closing < i+2 { // searched once, however many classes begin before it
				next := strings.IndexByte(s[i+2:], ']')
				if next < 0 {
					return set, -1
				}
				closing = i + 2 + next
			}
			end := closing - (i + 2)
			if end == 0 || s[i+2+end-1] != ':' { // not a class: a "[" like any other byte
				set.add('[', '[')
				prev = '['
				break
			}
			ranges, ok := classes[s[i+2:i+2+end-1]]
			if !ok {
				return set, -1
			}
			for ; ranges != ""; ranges = ranges[2:] {
				set.add(ranges[0], ranges[1])
			}
			i += 2 + end
			prev = -1
		default:
			if c == '\\' {
				if i++; i >= len(s) {
					return set, -1
				}
				c = s[i]
			}
			set.add(c, c)
			prev = int(c)
		}
		i++
	}
}

// finishSet applies the negation; no set matches a slash.
func finishSet(set *byteSet, negated bool) {
	if negated {
		for w := range set {
			set[w] = ^set[w]
		}
	}
	set['/'>>6] &^= 1 << ('/' & 63)
}

// classes are POSIX's, in ASCII: the first and last byte of each range.
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

// matches says whether the pattern fits a path. names are its components relative to the
// folder of the pattern's file.
func (p *pattern) matches(names []string, isDir bool, e *effort) bool {
	if p.dirOnly && !isDir || len(names) == 0 {
		return false
	}
	switch {
	case p.segments == nil && p.anchored:
		return isPath(p.plain, names, e)
	case p.segments == nil:
		return p.plain == names[len(names)-1]
	case !p.anchored:
		seg := p.segments[0]
		return seg.anyDepth || seg.matches(names[len(names)-1], e)
	}
	return matchSegments(p.segments, names, e)
}

// isPath says whether names make path.
func isPath(path string, names []string, e *effort) bool {
	for i, name := range names {
		if i > 0 && !strings.HasPrefix(path, "/") || !e.spend(1) {
			return false
		}
		rest, ok := strings.CutPrefix(path[min(i, 1):], name)
		if !ok {
			return false
		}
		path = rest
	}
	return path == ""
}

// matchSegments goes back only to the last "**". That is enough: the last one can take
// everything that an earlier one could.
func matchSegments(segs []segment, names []string, e *effort) bool {
	i, j := 0, 0
	backSeg, backName := -1, 0
	for j < len(names) {
		switch {
		case !e.spend(1):
			return false
		case i < len(segs) && segs[i].anyDepth:
			if i == len(segs)-1 {
				return true // a trailing "**": everything inside fits, and something is left
			}
			backSeg, backName = i, j
			i++
		case i < len(segs) && segs[i].matches(names[j], e):
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

func (s *segment) matches(name string, e *effort) bool {
	if s.glob != nil {
		return s.glob.matches(name, e)
	}
	return !s.anyDepth && s.literal == name && e.spend(1)
}

// matches goes back only to the last star, which is enough as in matchSegments.
func (g *glob) matches(name string, e *effort) bool {
	tokens := g.tokens
	i, j := 0, 0
	backToken, backByte := -1, 0
	for j < len(name) {
		switch {
		case !e.spend(1):
			return false
		case i < len(tokens) && tokens[i].kind == star:
			backToken, backByte = i, j
			i++
		case i < len(tokens) && tokens[i].kind == anyRune:
			_, size := utf8.DecodeRuneInString(name[j:])
			i++
			j += size
		case i < len(tokens) && tokens[i].matches(name[j], g.sets):
			i++
			j++
		case backToken >= 0:
			backByte++
			i, j = backToken+1, backByte
		default:
			return false
		}
	}
	for i < len(tokens) && tokens[i].kind == star {
		i++
	}
	return i == len(tokens)
}

func (t token) matches(b byte, sets []byteSet) bool {
	switch t.kind {
	case any1:
		return true
	case oneOf:
		return sets[t.set].has(b)
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
