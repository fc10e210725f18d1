// Package text counts, cuts and preserves text as editors and agents do: in
// UTF-16 code units, grapheme clusters and line ends. It is pure: no I/O, no
// clock, no state; every function is safe for concurrent use.
package text

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// UTF16Len reports the length of s in UTF-16 code units, as JavaScript and
// the Language Server Protocol count it. A byte that is not valid UTF-8
// counts as one unit (it would be decoded as U+FFFD).
func UTF16Len(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i, n = i+1, n+1
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i, n = i+size, n+units(r)
	}
	return n
}

// units returns how many UTF-16 units r takes: two, a surrogate pair, from U+10000 on.
func units(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// CutUTF16 returns the longest prefix of s that is at most limit UTF-16 units
// long and ends on a grapheme cluster boundary (UAX #29). When the first
// cluster alone is longer than limit it cuts between code points instead, so
// that a hostile run of combining marks cannot make the result empty. The
// cost depends on limit, not on the length of s.
func CutUTF16(s string, limit int) string {
	if len(s) <= limit {
		return s // a unit takes at least one byte
	}
	end := offsetUTF16(s, limit)
	if end == len(s) {
		return s
	}
	if cut := lastBoundary(s, end); cut > 0 {
		return s[:cut]
	}
	return s[:end]
}

// offsetUTF16 returns the byte length of the longest prefix of s that has whole code
// points and at most limit units.
func offsetUTF16(s string, limit int) int {
	i := 0
	for i < len(s) && limit > 0 {
		if s[i] < utf8.RuneSelf {
			i, limit = i+1, limit-1
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if units(r) > limit {
			break
		}
		i, limit = i+size, limit-units(r)
	}
	return i
}

// Substring returns JavaScript's s.substring(0, n): the first n UTF-16 units of s. When that cuts a surrogate pair, the half becomes U+FFFD.
func Substring(s string, n int) string {
	end := offsetUTF16(s, n)
	if end == len(s) || UTF16Len(s[:end]) == n {
		return s[:end]
	}
	return s[:end] + "\uFFFD"
}

// lastBoundary finds the last grapheme cluster boundary of s that is at most
// end, which is on a code point and less than len(s). It scans forward from
// the last boundary that ASCII makes certain, usually end itself.
func lastBoundary(s string, end int) int {
	sure := end
	for sure > 0 && !certainBoundary(s, sure) {
		sure--
	}
	// No rule of UAX #29 looks further ahead than one code point.
	_, next := utf8.DecodeRuneInString(s[end:])
	rest, state, at := s[sure:end+next], -1, sure
	for {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if cluster == "" || at+len(cluster) > end {
			return at
		}
		at += len(cluster)
	}
}

// certainBoundary reports whether s may be cut at i for a reason that needs
// no tables: before and after a control character (GB4, GB5) and between two
// ASCII characters, except between CR and LF (GB3).
func certainBoundary(s string, i int) bool {
	a, b := s[i-1], s[i]
	switch {
	case a == '\r' && b == '\n':
		return false
	case a < ' ' || b < ' ':
		return true
	default:
		return a < utf8.RuneSelf && b < utf8.RuneSelf
	}
}

// IsBinary reports whether b is not text that an editor can hold exactly: it
// holds a NUL or is not valid UTF-8.
func IsBinary(b []byte) bool {
	return bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b)
}

// bom is the byte order mark. U+FEFF is one only at the start of a text.
const bom = "\ufeff"

// ToLF returns s as an editor's buffer holds it: without byte order mark and
// with every line ending (CR LF, CR, LF) as a line feed.
func ToLF(s string) string { return endingsToLF(strings.TrimPrefix(s, bom)) }

// endingsToLF is ToLF, but keeps a byte order mark. Text without a carriage return is
// returned as it is, without a copy.
func endingsToLF(s string) string {
	cr := strings.IndexByte(s, '\r')
	if cr < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for ; cr >= 0; cr = strings.IndexByte(s, '\r') {
		b.WriteString(s[:cr])
		b.WriteByte('\n')
		s = strings.TrimPrefix(s[cr+1:], "\n")
	}
	b.WriteString(s)
	return b.String()
}
