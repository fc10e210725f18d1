package text

import (
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// A Shape is what an editor's buffer of lines does not hold: how the lines
// of a text end, whether it begins with a byte order mark.
type Shape struct {
	EOL string // "\n", "\r\n" or "\r": the commonest ending, the first one on a tie; "\n" when there is none
	// Mixed says that not every ending is EOL.
	Mixed bool
	BOM   bool
	// FinalNewline says that the text ends with a line ending (false for an empty text).
	FinalNewline bool
}

// ShapeOf looks once through s.
func ShapeOf(s string) Shape {
	sh := Shape{EOL: "\n", BOM: strings.HasPrefix(s, bom)}
	if s != "" {
		last := s[len(s)-1]
		sh.FinalNewline = last == '\n' || last == '\r'
	}
	cr := strings.IndexByte(s, '\r')
	if cr < 0 {
		return sh
	}
	counts := map[string]int{"\n": strings.Count(s[:cr], "\n")}
	first := ending(s[cr:])
	if counts["\n"] > 0 {
		first = "\n"
	}
	for rest := s[cr:]; rest != ""; {
		i := strings.IndexAny(rest, "\r\n")
		if i < 0 {
			break
		}
		e := ending(rest[i:])
		counts[e]++
		rest = rest[i+len(e):]
	}
	sh.EOL = first
	for _, e := range []string{"\n", "\r\n", "\r"} {
		if counts[e] > counts[sh.EOL] {
			sh.EOL = e
		}
	}
	sh.Mixed = counts["\n"]+counts["\r\n"]+counts["\r"] > counts[sh.EOL]
	return sh
}

// ending is the line ending that s begins with.
func ending(s string) string {
	if strings.HasPrefix(s, "\r\n") {
		return s[:2]
	}
	return s[:1]
}

// FromLF is the way back (SPEC F-6): edited is what became of ToLF(original)
// in an editor. Unedited text comes back byte for byte; in edited text each
// line that original had too keeps the ending that it had there, a line in
// the place of another takes that one's ending, further ones that of the line
// before them or the original's commonest one, and the byte order mark stays.
// Whether the last line has an ending is the edited text's business.
// For every s: FromLF(s, ToLF(s)) == s.
func FromLF(original, edited string) string {
	if ToLF(original) == edited {
		return original
	}
	sh := ShapeOf(original)
	edited = endingsToLF(edited) // no editor of ours sends others; a stray one is a line's end
	switch {
	case sh.Mixed:
		edited = restoreEndings(strings.TrimPrefix(original, bom), edited, sh.EOL)
	case sh.EOL != "\n":
		edited = strings.ReplaceAll(edited, "\n", sh.EOL)
	}
	if sh.BOM {
		edited = bom + edited
	}
	return edited
}

// restoreEndings gives each line of edited the ending that it had in original,
// whose endings are mixed and mostly eol. Neither begins with a byte order
// mark that counts. The comparison of lines is bounded (lcs gives up looking
// for the shortest difference after some hundred changes), so that it takes
// milliseconds for 5 MB.
func restoreEndings(original, edited, eol string) string {
	before, endings := splitLines(original)
	after := strings.Split(edited, "\n")

	// from[i] is the line of original that line i of edited was, or stands for; -1 for none.
	from := make([]int, len(after))
	for i := range from {
		from[i] = -1
	}
	lo, hi := commonEnds(before, after)
	shift := len(before) - len(after)
	for i := range lo {
		from[i] = i
	}
	for i := hi; i < len(after); i++ {
		from[i] = i + shift
	}
	a, b := before[lo:hi+shift], after[lo:hi]
	next, nextAfter := 0, 0
	kept := func(untilBefore, untilAfter int) {
		for ; next < untilBefore && nextAfter < untilAfter; next, nextAfter = next+1, nextAfter+1 {
			from[lo+nextAfter] = lo + next
		}
	}
	for _, d := range lcs.DiffLines(a, b) {
		kept(d.Start, d.ReplStart)
		kept(d.End, d.ReplEnd) // those replaced, one by one as far as both go
		next, nextAfter = d.End, d.ReplEnd
	}
	kept(len(a), len(b))
	return joinLines(after, func(i int) string {
		if from[i] >= 0 && from[i] < len(endings) {
			return endings[from[i]]
		}
		return ""
	}, eol)
}

// commonEnds reports how many lines both begin with, and where in b the lines
// begin that both end with.
func commonEnds(a, b []string) (lo, hi int) {
	for lo < len(a) && lo < len(b) && a[lo] == b[lo] {
		lo++
	}
	hi = len(b)
	for j := len(a); hi > lo && j > lo && a[j-1] == b[hi-1]; hi, j = hi-1, j-1 {
	}
	return lo, hi
}

// splitLines returns the lines of s without their endings, and the endings:
// one fewer, as the last line has none (it is empty when s ends with one).
func splitLines(s string) (lines, endings []string) {
	for {
		i := strings.IndexAny(s, "\r\n")
		if i < 0 {
			return append(lines, s), endings
		}
		e := ending(s[i:])
		lines, endings = append(lines, s[:i]), append(endings, e)
		s = s[i+len(e):]
	}
}

// joinLines puts lines together with the known ending after each but the
// last, or the ending before it where none is known.
func joinLines(lines []string, known func(i int) string, eol string) string {
	size := 0
	for _, l := range lines {
		size += len(l) + len("\r\n")
	}
	var b strings.Builder
	b.Grow(size)
	last := len(lines) - 1
	for i, l := range lines[:last] {
		before := eol
		if e := known(i); e != "" {
			eol = e
		}
		if i > 0 && before == "\r" && l == "" && eol == "\n" {
			eol = "\r" // or the two endings would become one CR LF
		}
		b.WriteString(l)
		b.WriteString(eol)
	}
	b.WriteString(lines[last])
	return b.String()
}
