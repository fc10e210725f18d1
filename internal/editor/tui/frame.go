package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A frame is the whole screen, with its clickable zones.
type frame struct {
	w, h  int
	rows  []string // with the terminal's codes; none is wider than w
	zones []zone
}

// A zone is a clickable part of one row.
type zone struct {
	row, from, to int    // columns; to is exclusive
	key           string // the key that a click presses
	diff          string // or the diff that it selects
	entry         int    // or the history entry, from 1
	hunk          int    // or the hunk, from 1
}

// String returns the frame as Bubble Tea draws it.
func (f *frame) String() string { return strings.Join(f.rows, "\n") }

// add appends a row, cut to the screen's width.
func (f *frame) add(text string) {
	if len(f.rows) < f.h {
		f.rows = append(f.rows, ansi.Truncate(text, f.w, ""))
	}
}

// zone makes a part of the next row clickable.
func (f *frame) zone(z zone) {
	z.row = len(f.rows)
	f.zones = append(f.zones, z)
}

// fill adds empty rows up to n.
func (f *frame) fill(n int) {
	for len(f.rows) < min(n, f.h) {
		f.rows = append(f.rows, "")
	}
}

// at finds the zone at a position.
func (f *frame) at(x, y int) (zone, bool) {
	for _, z := range f.zones {
		if z.row == y && x >= z.from && x < z.to {
			return z, true
		}
	}
	return zone{}, false
}

// pad fills text of known width up to w columns.
func pad(text string, width, w int) string {
	if width >= w {
		return text
	}
	return text + strings.Repeat(" ", w-width)
}

// between puts one text at the left end of a row and one at the right end.
func between(left, right string, w int) string {
	room := w - ansi.StringWidth(right)
	if room <= 1 {
		return ansi.Truncate(left, w, "…")
	}
	left = ansi.Truncate(left, room-1, "…")
	return pad(left, ansi.StringWidth(left), room) + right
}
