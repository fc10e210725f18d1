// Package jsontext reads and writes JSON with strings of many megabytes, in one pass and without copies.
package jsontext

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// MaxDepth bounds the nesting of arrays and objects.
const MaxDepth = 128

// A Scanner reads JSON in one pass. It unescapes strings in place: an escape is never shorter than its character, so
// the text fits, and a diff of megabytes is neither copied nor allocated again.
type Scanner struct {
	b       []byte
	i       int
	depth   int
	checked bool // strings are not looked into
}

// NewScanner returns a scanner of b. It changes b where it unescapes.
func NewScanner(b []byte) *Scanner { return &Scanner{b: b} }

// Done reports whether only white space is left.
func (s *Scanner) Done() bool { return s.Peek() == 0 && s.i == len(s.b) }

func (s *Scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// Peek returns the next byte after white space, 0 at the end.
func (s *Scanner) Peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// next consumes c after white space, if it is there.
func (s *Scanner) next(c byte) bool {
	if s.Peek() != c || s.i == len(s.b) {
		return false
	}
	s.i++
	return true
}

// Object reads an object and calls member at each value, which must consume it.
func (s *Scanner) Object(member func(key string) bool) bool {
	if !s.next('{') || s.depth == MaxDepth {
		return false
	}
	s.depth++
	defer func() { s.depth-- }()
	if s.next('}') {
		return true
	}
	for {
		if s.Peek() != '"' {
			return false
		}
		key, ok := s.Text()
		if !ok || !s.next(':') || !member(key.Value) {
			return false
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// Array reads an array and calls element at each value.
func (s *Scanner) Array(element func() bool) bool {
	if !s.next('[') || s.depth == MaxDepth {
		return false
	}
	s.depth++
	defer func() { s.depth-- }()
	if s.next(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// Skip validates and skips any value without changing it.
func (s *Scanner) Skip() bool {
	switch c := s.Peek(); {
	case c == '"':
		return s.skipString()
	case c == '{':
		return s.skipObject()
	case c == '[':
		return s.Array(s.Skip)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	default:
		return s.literal("true") || s.literal("false") || s.literal("null")
	}
}

// skipObject is Object without unescaping keys, so that the skipped text can be read again.
func (s *Scanner) skipObject() bool {
	if !s.next('{') || s.depth == MaxDepth {
		return false
	}
	s.depth++
	defer func() { s.depth-- }()
	if s.next('}') {
		return true
	}
	for {
		if s.Peek() != '"' || !s.skipString() || !s.next(':') || !s.Skip() {
			return false
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// Raw returns the JSON of the next value.
func (s *Scanner) Raw() ([]byte, bool) {
	s.space()
	start := s.i
	if !s.Skip() {
		return nil, false
	}
	return s.b[start:s.i:s.i], true
}

func (s *Scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// number follows RFC 8259's grammar.
func (s *Scanner) number() bool {
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	leading := s.i
	if !s.digits() || s.b[leading] == '0' && s.i > leading+1 {
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

func (s *Scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// skipString validates and skips a string.
func (s *Scanner) skipString() bool {
	s.i++
	if s.checked {
		return s.leaveString()
	}
	start := s.i
	for {
		s.i += plain(s.b[s.i:])
		if s.i == len(s.b) {
			return false
		}
		switch s.b[s.i] {
		case '"':
			s.i++
			return utf8.Valid(s.b[start : s.i-1])
		case '\\':
			if simple(s.b[s.i:]) != 0 {
				s.i += 2
				continue
			}
			_, size, _ := unicodeEscape(s.b[s.i:])
			if size == 0 {
				return false
			}
			s.i += size
		default:
			return false
		}
	}
}

// leaveString skips the rest of a string without checking it.
func (s *Scanner) leaveString() bool {
	for start := s.i; ; {
		n := bytes.IndexByte(s.b[s.i:], '"')
		if n < 0 {
			return false
		}
		quote := s.i + n
		s.i = quote + 1
		slashes := 0
		for quote-slashes > start && s.b[quote-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 { // the quote is not escaped
			return true
		}
	}
}

// A TextState says what was found where a string was expected.
type TextState uint8

const (
	// Absent: no such member.
	Absent TextState = iota
	// Good: a string of Unicode text.
	Good
	// NotText: a value of another type.
	NotText
	// LoneSurrogate: a string with an escape for half a character. Its Value has U+FFFD there, so it must not be
	// passed on as the peer's text (SPEC F-6).
	LoneSurrogate
)

// A Text is a string that was read, and its state.
type Text struct {
	Value string
	State TextState
	JSON  string // the string as it was sent, with its quotes; only from Aside
}

// Text reads a string and unescapes it in place; those bytes must not be read again. The value points into them.
func (s *Scanner) Text() (Text, bool) {
	start := s.i + 1
	first := start + plain(s.b[start:])
	src, dst, state := unescape(s.b, first, s.b, first)
	if src == 0 {
		return Text{}, false
	}
	s.i = src
	return text(s.b[start:dst], state), utf8.Valid(s.b[start:dst])
}

func text(b []byte, state TextState) Text {
	return Text{Value: unsafe.String(unsafe.SliceData(b), len(b)), State: state}
}

// Aside is Text for a string that is needed as JSON too: it unescapes a copy. The JSON points into the scanner's bytes, the value
// does not.
func (s *Scanner) Aside() (Text, bool) {
	if s.Peek() != '"' {
		return Text{}, false
	}
	start := s.i
	s.i++
	if !s.leaveString() {
		return Text{}, false
	}
	sent := s.b[start:s.i]
	out := make([]byte, len(sent))
	src, dst, state := unescape(out, 0, sent, 1)
	t := text(out[:dst:dst], state)
	t.JSON = unsafe.String(unsafe.SliceData(sent), len(sent))
	return t, src == len(sent) && utf8.Valid(out[:dst])
}

// unescape reads a string of b from src, behind its quote, and writes its text to out from dst. It returns the positions
// behind the string's last quote and behind the text; src is 0 if it is no string. out may be b, with dst not behind src; otherwise it is as
// long as b. Escapes stand for whole characters, so the text is valid UTF-8 exactly when the string is.
func unescape(out []byte, dst int, b []byte, src int) (_, _ int, state TextState) {
	apart := unsafe.SliceData(out) != unsafe.SliceData(b)
	state = Good
	for src < len(b) {
		if len(b)-src >= 8 && (apart || src-dst >= 8) {
			w := binary.LittleEndian.Uint64(b[src:])
			binary.LittleEndian.PutUint64(out[dst:], w) // excess bytes are overwritten; in place they land before src
			found := special(w)
			if found == 0 { // by a branch, since counting first would have each word wait for the one before
				src, dst = src+8, dst+8
				continue
			}
			few := bits.TrailingZeros64(found) >> 3
			src, dst = src+few, dst+few
		} else {
			n := plain(b[src:])
			copy(out[dst:dst+n], b[src:src+n])
			src, dst = src+n, dst+n
		}
		if src == len(b) || b[src] != '\\' {
			break
		}
		for src < len(b)-1 && b[src] == '\\' && meanings[b[src+1]] != 0 { // several, as at the beginning of most lines
			out[dst] = meanings[b[src+1]]
			src, dst = src+2, dst+1
		}
		if src < len(b) && b[src] == '\\' {
			r, size, lone := unicodeEscape(b[src:])
			if size == 0 {
				return 0, dst, state
			}
			if lone {
				state = LoneSurrogate
			}
			src += size
			dst += utf8.EncodeRune(out[dst:], r)
		}
	}
	if src == len(b) || b[src] != '"' {
		return 0, dst, state
	}
	return src + 1, dst, state
}

// meanings are the characters of two-byte escapes, by their second byte.
var meanings = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'} //nolint:gochecknoglobals // constant

// simple returns the character of a two-byte escape at the beginning of b; 0 if there is none.
func simple(b []byte) byte {
	if len(b) < 2 {
		return 0
	}
	return meanings[b[1]]
}

// unicodeEscape reads \uXXXX at the beginning of b, or two of them that form a pair. It returns the character, the
// bytes read (0 if there is no escape), and whether it was half a pair.
func unicodeEscape(b []byte) (r rune, size int, lone bool) {
	r, ok := hex4(b)
	switch {
	case !ok:
		return 0, 0, false
	case !utf16.IsSurrogate(r):
		return r, 6, false
	}
	if low, ok := hex4(b[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12, false
		}
	}
	return utf8.RuneError, 6, true
}

// hex4 reads \uXXXX at the beginning of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// plain counts the bytes before the first special byte of a JSON string: a quote, a backslash, or a control
// character.
func plain(b []byte) int {
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		if first := firstSpecial(binary.LittleEndian.Uint64(b[n:])); first < 8 {
			return n + first
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c == '"' || c == '\\' || c < ' ' {
			return n
		}
	}
	return n
}

// firstSpecial is plain for the eight bytes of a little-endian word; 8 if none is special.
func firstSpecial(w uint64) int { return bits.TrailingZeros64(special(w)) >> 3 }

// Words with a byte's lowest and highest bit set, eight times.
const ones, highs = 0x0101010101010101, 0x8080808080808080

// special sets the highest bit of each special byte of a word (see plain). It may also set the bit of a byte above a
// special one, never of one below, so the lowest bit is right.
func special(w uint64) uint64 {
	quote := w ^ '"'*ones
	slash := w ^ '\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-' '*ones)&^w) & highs
}
