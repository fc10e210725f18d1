package tui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	// tabWidth is the distance between tab stops.
	tabWidth = 4
	// maxMarks is how many combining marks a character may carry; more would grow out of the line.
	maxMarks = 4
)

// A cell is one character as shown. It never exceeds its width and holds nothing that a terminal obeys.
type cell struct {
	text  string
	width int  // columns
	at    int  // its offset in the source, in bytes
	mark  bool // it stands for an invisible character
}

// A cutter walks through a line of untrusted text. Control characters, characters that reorder text and invisible
// characters come out as visible marks (SPEC F-5: what is accepted is what is shown).
type cutter struct {
	s   string
	at  int // offset in bytes
	col int // column, for tabs
}

// next returns the cells of the next character, or none at the end.
func (c *cutter) next() []cell {
	if c.at >= len(c.s) {
		return nil
	}
	var cells []cell
	if b := c.s[c.at]; b < utf8.RuneSelf && (c.at+1 == len(c.s) || c.s[c.at+1] < utf8.RuneSelf) {
		cells = []cell{c.ascii(b)} // the next byte is ASCII too, so this is no cluster
		c.at++
	} else {
		cluster, _ := ansi.FirstGraphemeCluster(c.s[c.at:], ansi.GraphemeWidth)
		if cluster == "" {
			cluster = c.s[c.at : c.at+1]
		}
		cells = visible(cluster, c.at)
		c.at += len(cluster)
	}
	for _, x := range cells {
		c.col += x.width
	}
	return cells
}

func (c *cutter) ascii(b byte) cell {
	switch {
	case b == '\t':
		n := tabWidth - c.col%tabWidth
		return cell{strings.Repeat(" ", n), n, c.at, false}
	case b < ' ':
		return cell{string(rune(0x2400 + int(b))), 1, c.at, true} // ␛ for ESC
	case b == 0x7f:
		return cell{"\u2421", 1, c.at, true}
	}
	return cell{c.s[c.at : c.at+1], 1, c.at, false}
}

// visible returns a grapheme cluster as cells. It splits joined emoji, because terminals disagree about their width.
func visible(cluster string, at int) []cell {
	var cells []cell
	marks := 0
	for i, r := range cluster {
		size := utf8.RuneLen(r)
		last := len(cells) - 1
		switch {
		case r == utf8.RuneError && cluster[i] != "\ufffd"[0]:
			cells = append(cells, markCell(fmt.Sprintf("‹%02X›", cluster[i]), at+i))
		case r < ' ' || r == 0x7f:
			one := cutter{s: cluster[i : i+1]}
			x := one.ascii(byte(r))
			x.at = at + i
			cells = append(cells, x)
		case joins(r) && last >= 0 && !cells[last].mark && cells[last].width == 2, selects(r) && last >= 0 && i > 0 && symbol(cluster):
			// no width, and no meaning outside emoji
		case hidden(r):
			cells = append(cells, markCell(fmt.Sprintf("‹%X›", r), at+i))
		case unicode.In(r, unicode.Mn, unicode.Me) && last >= 0 && (marks > maxMarks || !cells[last].mark):
			if marks++; marks <= maxMarks {
				cells[last].text += cluster[i : i+size]
			} else if marks == maxMarks+1 {
				cells = append(cells, markCell("‹…›", at+i))
			}
		default:
			text := string(r)
			if unicode.In(r, unicode.Mn, unicode.Me) {
				text = "◌" + text
			}
			w := ansi.StringWidth(text)
			if w <= 0 {
				cells = append(cells, markCell(fmt.Sprintf("‹%X›", r), at+i))
				continue
			}
			cells = append(cells, cell{text, w, at + i, false})
		}
	}
	return cells
}

func markCell(text string, at int) cell { return cell{text, ansi.StringWidth(text), at, true} }

func joins(r rune) bool   { return r == 0x200d }
func selects(r rune) bool { return r == 0xfe0e || r == 0xfe0f }

// symbol reports whether a cluster begins like an emoji.
func symbol(cluster string) bool {
	r, _ := utf8.DecodeRuneInString(cluster)
	return r >= 0x203c || r == '#' || r == '*' || r >= '0' && r <= '9'
}

// hidden reports whether a character is invisible, or changes the order or look of others: controls, bidi controls,
// zero-width blanks, fillers, tags, and skin tones (some terminals give them a width of their own).
func hidden(r rune) bool {
	switch {
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs):
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x034f, r == 0x17b4, r == 0x17b5, r == 0x2800:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef, r >= 0x180b && r <= 0x180f, r >= 0x1f3fb && r <= 0x1f3ff:
		return true
	}
	return unicode.Is(unicode.Zs, r) && r != ' ' && r != 0x3000 || !unicode.IsPrint(r) && !unicode.In(r, unicode.Co, unicode.Zs) && !unicode.IsMark(r)
}

// A line is untrusted text laid out: its visible cells.
type line struct {
	cells       []cell
	width       int  // columns taken
	left, right bool // more text on that side
}

// layOut cuts text to width columns from column skip on. It reads no more of the text than it needs.
func layOut(text string, skip, width int) line {
	var l line
	if width <= 0 {
		return l
	}
	c := cutter{s: text}
	l.left = skip > 0 && text != ""
	for {
		from := c.col
		cells := c.next()
		if cells == nil {
			return l
		}
		for _, x := range cells {
			to := from + x.width
			switch {
			case to <= skip:
			case l.width+min(x.width, to-skip) > width:
				l.right = true
				return l
			case from < skip: // only half of it is visible
				n := to - skip
				l.cells = append(l.cells, cell{strings.Repeat(" ", n), n, x.at, x.mark})
				l.width += n
			default:
				l.cells = append(l.cells, x)
				l.width += x.width
			}
			from = to
		}
	}
}

const (
	// maxDrawn is how many bytes of a line are drawn. A longer line shows the part around its first change.
	maxDrawn = 64 << 10
	// beforeChange is how many of those bytes stand before the change.
	beforeChange = 1 << 10
)

// drawn returns the part of a huge line that is drawn, with its spans, and notes how much is left out on either side.
// A decision still covers the whole line. Shorter lines are returned unchanged.
func drawn(text string, words []span) (part string, inPart []span, cut bool) {
	if len(text) <= maxDrawn {
		return text, words, false
	}
	from := 0
	if len(words) > 0 {
		from = max(0, words[0].from-beforeChange)
	}
	to := min(len(text), from+maxDrawn)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	lead, tail := leftOut(from), leftOut(len(text)-to)
	for _, w := range words {
		if w.from < to && w.to > from {
			inPart = append(inPart, span{max(w.from, from) - from + len(lead), min(w.to, to) - from + len(lead)})
		}
	}
	return lead + text[from:to] + tail, inPart, true
}

// leftOut is the note for n bytes of a line that are not drawn.
func leftOut(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("⋯ %d bytes ⋯", n)
}

// columnOf returns the column of the byte at offset at.
func columnOf(text string, at int) int {
	c := cutter{s: text}
	for c.at < at && c.next() != nil {
	}
	return c.col
}

// plain returns untrusted text made harmless, at most width columns, with "…" where it is cut.
func plain(text string, width int) string {
	l := layOut(text, 0, width)
	if l.right && width > 1 {
		l = layOut(text, 0, width-1)
	}
	var b strings.Builder
	for _, c := range l.cells {
		b.WriteString(c.text)
	}
	if l.right && width > 1 {
		b.WriteString("…")
	}
	return b.String()
}
