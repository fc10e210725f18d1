package text

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// A Merged is the result of merging two changes of one text.
type Merged struct {
	// Text has both changes. Where they conflict, it has mine.
	Text string
	// Conflicts are the places in Text where both changed the same lines differently, in
	// order. It is empty when the merge is clean.
	Conflicts []Conflict
	// Rest is theirs, but with base's lines at the conflicts. Use it as the base of the
	// next merge, so that a change that was taken is not taken again.
	Rest string
}

// A Conflict is one place where two changes do not go together.
type Conflict struct {
	// Start and End are lines of Merged.Text, 0-based; End is the first line after the place.
	Start, End int
	// Theirs are the other side's lines with their line feeds, "" when it deleted them.
	Theirs string
}

// Merge merges two changes of base line by line, as diff3 does: mine and
// theirs. Line endings are line feeds; the last line need not have one. Changes
// that touch each other conflict unless they are the same. A side that changed
// nothing leaves the other as it is, byte for byte.
func Merge(base, mine, theirs string) Merged {
	switch {
	case base == theirs || mine == theirs:
		return Merged{Text: mine, Rest: theirs}
	case base == mine:
		return Merged{Text: theirs, Rest: theirs}
	}
	m := merger{base: linesOf(base), mine: linesOf(mine), theirs: linesOf(theirs)}
	m.run(lcs.DiffLines(m.base, m.mine), lcs.DiffLines(m.base, m.theirs))
	return Merged{Text: strings.Join(m.text, ""), Conflicts: m.conflicts, Rest: strings.Join(m.rest, "")}
}

// TakeTheirs returns the merged text with theirs at every conflict.
func (m Merged) TakeTheirs() string {
	lines := linesOf(m.Text)
	var b strings.Builder
	at := 0
	for _, c := range m.Conflicts {
		for _, l := range lines[at:c.Start] {
			b.WriteString(l)
		}
		b.WriteString(c.Theirs)
		at = c.End
	}
	for _, l := range lines[at:] {
		b.WriteString(l)
	}
	return b.String()
}

// linesOf cuts s after each line feed.
func linesOf(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// A merger goes through three texts at once.
type merger struct {
	base, mine, theirs []string
	text, rest         []string
	conflicts          []Conflict
}

// run merges the changes x of mine and y of theirs, both in order.
func (m *merger) run(x, y []lcs.Diff) {
	at := 0                // in base
	shiftX, shiftY := 0, 0 // where that is in mine and theirs
	for len(x) > 0 || len(y) > 0 {
		nx, ny, lo, hi := group(x, y)
		m.same(m.base[at:lo])
		endX, endY := shiftX+growth(x[:nx]), shiftY+growth(y[:ny])
		m.place(m.base[lo:hi], m.mine[lo+shiftX:hi+endX], m.theirs[lo+shiftY:hi+endY])
		at, shiftX, shiftY = hi, endX, endY
		x, y = x[nx:], y[ny:]
	}
	m.same(m.base[at:])
}

// group counts the first changes of both sides that touch one another, and returns
// the lines of base that they cover together.
func group(x, y []lcs.Diff) (nx, ny, lo, hi int) {
	if len(y) == 0 || len(x) > 0 && x[0].Start <= y[0].Start {
		nx, lo, hi = 1, x[0].Start, x[0].End
	} else {
		ny, lo, hi = 1, y[0].Start, y[0].End
	}
	for {
		switch {
		case nx < len(x) && x[nx].Start <= hi:
			hi = max(hi, x[nx].End)
			nx++
		case ny < len(y) && y[ny].Start <= hi:
			hi = max(hi, y[ny].End)
			ny++
		default:
			return nx, ny, lo, hi
		}
	}
}

// growth returns by how many lines changes make a text longer.
func growth(changes []lcs.Diff) int {
	n := 0
	for _, c := range changes {
		n += (c.ReplEnd - c.ReplStart) - (c.End - c.Start)
	}
	return n
}

// same copies lines that nobody changed.
func (m *merger) same(lines []string) {
	m.text, m.rest = append(m.text, lines...), append(m.rest, lines...)
}

// place merges one group.
func (m *merger) place(base, mine, theirs []string) {
	switch {
	case slices.Equal(base, theirs), slices.Equal(mine, theirs):
		m.text, m.rest = append(m.text, mine...), append(m.rest, theirs...)
	case slices.Equal(base, mine):
		m.text, m.rest = append(m.text, theirs...), append(m.rest, theirs...)
	default:
		start := len(m.text)
		m.text, m.rest = append(m.text, mine...), append(m.rest, base...)
		m.conflicts = append(m.conflicts, Conflict{Start: start, End: len(m.text), Theirs: strings.Join(theirs, "")})
	}
}
