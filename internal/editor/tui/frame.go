package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A frame is the whole screen, and what a click on it does.
type frame struct {
	w, h  int
	rows  []string // with the terminal's codes; none is wider than w
	zones []zone
}

// A zone is a part of one row that can be clicked.
type zone struct {
	row, from, to int    // columns, to excluded
	key           string // the key that it stands for
	diff          string // or the diff that it chooses
	entry         int    // or the entry of the past, from 1
	hunk          int    // or the hunk, from 1
}

// String is the frame as Bubble Tea draws it.
func (f *frame) String() string { return strings.Join(f.rows, "\n") }

// add appends a row; what is too wide for the screen is cut.
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

// fill adds empty rows until n are there.
func (f *frame) fill(n int) {
	for len(f.rows) < min(n, f.h) {
		f.rows = append(f.rows, "")
	}
}

// at finds what was clicked.
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

// between puts one text at the left and one at the right of a row.
func between(left, right string, w int) string {
	room := w - ansi.StringWidth(right)
	if room <= 1 {
		return ansi.Truncate(left, w, "…")
	}
	left = ansi.Truncate(left, room-1, "…")
	return pad(left, ansi.StringWidth(left), room) + right
}
