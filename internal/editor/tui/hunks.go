package tui

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// A hunk is one place where the proposal differs from the file, in line numbers of both.
type hunk struct {
	oldFrom, oldTo int
	newFrom, newTo int
	reverted       bool // the user has left it out
}

// lines is a text to compare, as lines without their ends. A final line feed leaves an empty last line. nil is a
// missing file.
type lines []string

func splitText(s string) lines { return strings.Split(s, "\n") }

// A change is a proposal against a file, hunk by hunk.
type change struct {
	old, new lines
	hunks    []hunk
}

// newChange compares two texts with line feeds; isNew says that there is no old text.
func newChange(old string, isNew bool, proposed string) *change {
	c := &change{new: splitText(proposed)}
	if !isNew {
		c.old = splitText(old)
	}
	c.hunks = compare(c.old, c.new)
	return c
}

// compare finds where two texts differ. It takes milliseconds for 5 MB; the price is larger hunks than necessary
// where almost everything differs.
func compare(a, b lines) []hunk {
	lo := 0
	for lo < len(a) && lo < len(b) && a[lo] == b[lo] {
		lo++
	}
	hiA, hiB := len(a), len(b)
	for hiA > lo && hiB > lo && a[hiA-1] == b[hiB-1] {
		hiA, hiB = hiA-1, hiB-1
	}
	var hunks []hunk
	for _, d := range compareLines(a[lo:hiA], b[lo:hiB]) {
		h := hunk{oldFrom: lo + d.Start, oldTo: lo + d.End, newFrom: lo + d.ReplStart, newTo: lo + d.ReplEnd}
		if n := len(hunks); n > 0 && hunks[n-1].oldTo == h.oldFrom && hunks[n-1].newTo == h.newFrom {
			hunks[n-1].oldTo, hunks[n-1].newTo = h.oldTo, h.newTo
			continue
		}
		hunks = append(hunks, h)
	}
	return hunks
}

// anchoredFrom is the number of lines from which texts are compared piece by piece, between lines unique in both: the
// comparison stops looking for the smallest difference after a few hundred changes.
const anchoredFrom = 2000

// compareLines returns the differences between two texts.
func compareLines(a, b lines) []lcs.Diff {
	if len(a)+len(b) < anchoredFrom {
		return lcs.DiffLines(a, b)
	}
	var diffs []lcs.Diff
	atA, atB := 0, 0
	for _, x := range append(anchors(a, b), [2]int{len(a), len(b)}) {
		for _, d := range lcs.DiffLines(a[atA:x[0]], b[atB:x[1]]) {
			diffs = append(diffs, lcs.Diff{Start: atA + d.Start, End: atA + d.End, ReplStart: atB + d.ReplStart, ReplEnd: atB + d.ReplEnd})
		}
		atA, atB = x[0]+1, x[1]+1
	}
	return diffs
}

// anchors returns the places of lines that are unique in both texts, as many as come in the same order in both.
func anchors(a, b lines) [][2]int {
	type seen struct{ inA, inB, a, b int }
	places := make(map[string]*seen, len(a))
	for i, l := range a {
		if p := places[l]; p != nil {
			p.inA++
		} else {
			places[l] = &seen{inA: 1, a: i}
		}
	}
	for i, l := range b {
		if p := places[l]; p != nil {
			p.inB++
			p.b = i
		}
	}
	var pairs [][2]int
	for _, l := range a {
		if p := places[l]; p.inA == 1 && p.inB == 1 {
			pairs = append(pairs, [2]int{p.a, p.b})
		}
	}
	return longestRising(pairs)
}

// longestRising drops the fewest pairs so that the second numbers increase like the first ones.
func longestRising(pairs [][2]int) [][2]int {
	before := make([]int, len(pairs)) // the previous pair, -1 for none
	var ends []int                    // for each length, the pair that ends its row lowest
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p[1], func(e, second int) int { return pairs[e][1] - second })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	rising := make([][2]int, len(ends))
	if len(ends) > 0 {
		for i, n := ends[len(ends)-1], len(ends)-1; n >= 0; i, n = before[i], n-1 {
			rising[n] = pairs[i]
		}
	}
	return rising
}

// text returns what the file would hold: the proposal without the reverted hunks.
func (c *change) text() string {
	if !slices.ContainsFunc(c.hunks, func(h hunk) bool { return h.reverted }) {
		return strings.Join(c.new, "\n")
	}
	var out []string
	at := 0
	for _, h := range c.hunks {
		out = append(out, c.new[at:h.newFrom]...)
		if h.reverted {
			out = append(out, c.old[h.oldFrom:h.oldTo]...)
		} else {
			out = append(out, c.new[h.newFrom:h.newTo]...)
		}
		at = h.newTo
	}
	return strings.Join(append(out, c.new[at:]...), "\n")
}

// toggle takes hunk i out of the proposal, or back in.
func (c *change) toggle(i int) {
	if i >= 0 && i < len(c.hunks) {
		c.hunks[i].reverted = !c.hunks[i].reverted
	}
}

// count returns the lines added and removed by the hunks that are not reverted.
func (c *change) count() (added, removed int) {
	for _, h := range c.hunks {
		if !h.reverted {
			added += c.shown(c.new, h.newFrom, h.newTo)
			removed += c.shown(c.old, h.oldFrom, h.oldTo)
		}
	}
	return added, removed
}

// shown counts lines as a person does: the empty line after the last line feed does not count.
func (c *change) shown(text lines, from, to int) int {
	n := to - from
	if n > 0 && to == len(text) && text[to-1] == "" {
		n--
	}
	return n
}

// A rowKind is what a row of the diff shows.
type rowKind int

const (
	same    rowKind = iota
	removed         // a line that leaves the file
	added           // a line that the proposal adds
	paired          // side by side: a removed line and an added one
	folded          // equal lines, not shown
)

// A row is one line of the diff, unified or side by side.
type row struct {
	kind     rowKind
	old, new int // line numbers, -1 for none; of a folded row the first
	hunk     int // -1 outside a hunk
	count    int // of a folded row: how many lines
}

// rowOptions choose the layout of the rows.
type rowOptions struct {
	side    bool // side by side
	context int  // lines around a hunk; a negative number shows all
}

// rows lays a change out.
func (c *change) rows(o rowOptions) []row {
	var rows []row
	oldAt, newAt := 0, 0
	for i, h := range c.hunks {
		rows = c.between(rows, o, oldAt, newAt, h.newFrom-newAt, i > 0, true)
		if o.side {
			rows = sideRows(rows, i, h)
		} else {
			rows = unifiedRows(rows, i, h)
		}
		oldAt, newAt = h.oldTo, h.newTo
	}
	return c.between(rows, o, oldAt, newAt, len(c.new)-newAt, len(c.hunks) > 0, false)
}

// between lays out n equal lines, folded except for a few after one hunk and before the next.
func (c *change) between(rows []row, o rowOptions, old, new, n int, after, before bool) []row {
	if n > 0 && !before && c.new[new+n-1] == "" {
		n-- // nothing after the last line feed counts as a line
	}
	head, tail := 0, 0
	if after {
		head = min(n, max(0, o.context))
	}
	if before {
		tail = min(n-head, max(0, o.context))
	}
	hide := n - head - tail
	if o.context < 0 || hide <= 1 {
		head, tail, hide = n, 0, 0
	}
	for i := range head {
		rows = append(rows, row{kind: same, old: old + i, new: new + i, hunk: -1})
	}
	if hide > 0 {
		rows = append(rows, row{kind: folded, old: old + head, new: new + head, hunk: -1, count: hide})
	}
	for i := n - tail; i < n; i++ {
		rows = append(rows, row{kind: same, old: old + i, new: new + i, hunk: -1})
	}
	return rows
}

func unifiedRows(rows []row, i int, h hunk) []row {
	for l := h.oldFrom; l < h.oldTo; l++ {
		rows = append(rows, row{kind: removed, old: l, new: -1, hunk: i})
	}
	for l := h.newFrom; l < h.newTo; l++ {
		rows = append(rows, row{kind: added, old: -1, new: l, hunk: i})
	}
	return rows
}

func sideRows(rows []row, i int, h hunk) []row {
	for l := range max(h.oldTo-h.oldFrom, h.newTo-h.newFrom) {
		r := row{kind: paired, old: h.oldFrom + l, new: h.newFrom + l, hunk: i}
		switch {
		case r.old >= h.oldTo:
			r.kind, r.old = added, -1
		case r.new >= h.newTo:
			r.kind, r.new = removed, -1
		}
		rows = append(rows, r)
	}
	return rows
}

// partner returns the line on the other side that a changed line is compared with word by word, or -1.
func (h hunk) partner(old, new int) int {
	if old >= 0 {
		if n := h.newFrom + old - h.oldFrom; n < h.newTo {
			return n
		}
		return -1
	}
	if n := h.oldFrom + new - h.newFrom; n < h.oldTo {
		return n
	}
	return -1
}
