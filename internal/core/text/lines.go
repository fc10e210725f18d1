package text

import (
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// A Shape is the part of a text that an editor's buffer of lines does not hold: how its
// lines end, and whether it begins with a byte order mark.
type Shape struct {
	EOL string // "\n", "\r\n" or "\r": the commonest ending, the first one on a tie; "\n" when there is none
	// Mixed says that not every ending is EOL.
	Mixed bool
	BOM   bool
	// FinalNewline says that the text ends with a line ending (false for an empty text).
	FinalNewline bool
}

// ShapeOf returns the shape of s. It looks through s once.
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

// ending returns the line ending at the start of s.
func ending(s string) string {
	if strings.HasPrefix(s, "\r\n") {
		return s[:2]
	}
	return s[:1]
}

// FromLF turns an editor's text back into the file's (SPEC F-6). edited is what the
// editor made of ToLF(original). Unedited text comes back byte for byte. In edited text:
// a line that original had keeps its ending; a line in the place of another takes that
// line's ending; further lines take the ending of the line before them, or else the
// original's commonest; the byte order mark stays. Whether the last line has an ending
// is as in edited. For every s: FromLF(s, ToLF(s)) == s.
func FromLF(original, edited string) string {
	if ToLF(original) == edited {
		return original
	}
	sh := ShapeOf(original)
	edited = endingsToLF(edited) // our editors send line feeds only; a stray ending of another kind ends a line too
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

// restoreEndings gives each line of edited the ending that it had in original, whose
// endings are mixed and mostly eol. Both texts come without the byte order mark. The
// comparison is bounded (lcs gives up looking for the shortest difference after some
// hundred changes), so it takes milliseconds for 5 MB.
func restoreEndings(original, edited, eol string) string {
	before, endings := splitLines(original)
	after := strings.Split(edited, "\n")

	// from[i] is the line of original that line i of edited was, or replaces; -1 for neither.
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
		kept(d.End, d.ReplEnd) // replaced lines, one by one as far as both sides go
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

// commonEnds counts the lines that both begin with, and finds where in b the lines
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

// joinLines puts lines together, with the known ending after each but the last. Where
// no ending is known, it repeats the one before.
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
