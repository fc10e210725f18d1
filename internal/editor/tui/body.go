package tui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// drawBody draws the visible rows of the diff.
func (m *model) drawBody(f *frame) {
	doc := m.doc()
	if doc == nil {
		f.add("")
		f.add("  reading the texts…")
		return
	}
	rows := m.rows()
	height := m.bodyHeight()
	if len(rows) == 0 {
		f.add("")
		f.add("  " + nothing(doc))
		return
	}
	p := painter{m: m, doc: doc, digits: digits(len(doc.change.old), len(doc.change.new))}
	for _, r := range rows[min(m.top, len(rows)):min(m.top+height, len(rows))] {
		if r.hunk >= 0 {
			f.zone(zone{from: 0, to: f.w, hunk: r.hunk + 1})
		}
		f.add(p.row(r, f.w))
	}
}

// nothing explains why a diff has no rows.
func nothing(doc *document) string {
	if doc.texts.New == "" {
		return "The file becomes empty, or stays so."
	}
	return "There is no difference in the text; only its line ends may differ."
}

func digits(a, b int) int { return max(2, len(strconv.Itoa(max(a, b)))) }

// A painter draws the rows of one diff.
type painter struct {
	m      *model
	doc    *document
	digits int
}

func (p *painter) row(r row, w int) string {
	if r.kind == folded {
		text := fmt.Sprintf("··· %d unchanged lines ···", r.count)
		return paint(p.m.theme.style(look{tone: toneDim}), strings.Repeat(" ", max(0, (w-ansi.StringWidth(text))/2))+text)
	}
	cursor := " "
	if r.hunk >= 0 && r.hunk == p.m.hunk {
		cursor = "▌"
	}
	if p.m.conflicting(r.new) != nil {
		cursor = "!"
	}
	if !p.m.side() {
		return cursor + p.unified(r, w-1)
	}
	half := (w - 2) / 2
	return cursor + p.half(r, r.old, true, half) + "│" + p.half(r, r.new, false, w-2-half)
}

// reverted reports whether the user has left the row's hunk out.
func (p *painter) reverted(r row) bool {
	return r.hunk >= 0 && r.hunk < len(p.doc.change.hunks) && p.doc.change.hunks[r.hunk].reverted
}

// sign returns the character in front of a line, and its tone.
func (p *painter) sign(r row, old bool) (string, tone) {
	switch {
	case r.hunk < 0:
		return " ", toneSame
	case old && p.reverted(r):
		return "=", toneSame
	case old:
		return "-", toneRemoved
	case p.reverted(r):
		return "×", toneReverted
	}
	return "+", toneAdded
}

func (p *painter) unified(r row, w int) string {
	old := r.kind == removed
	sign, t := p.sign(r, old)
	gutter := p.number(r.old) + " " + p.number(r.new) + " "
	if r.kind == same {
		old = false
	}
	width := w - 2*p.digits - 4
	i := r.new
	if old {
		i = r.old
	}
	return paint(p.m.theme.style(look{tone: toneDim}), gutter) + paint(p.m.theme.style(look{tone: t}), sign+" ") + p.text(r, i, old, t, width)
}

// half draws one side of a row.
func (p *painter) half(r row, i int, old bool, w int) string {
	if i < 0 {
		return strings.Repeat(" ", max(0, w))
	}
	sign, t := p.sign(r, old)
	return paint(p.m.theme.style(look{tone: toneDim}), p.number(i)+" ") +
		paint(p.m.theme.style(look{tone: t}), sign+" ") + p.text(r, i, old, t, w-p.digits-3)
}

func (p *painter) number(i int) string {
	if i < 0 {
		return strings.Repeat(" ", p.digits)
	}
	return fmt.Sprintf("%*d", p.digits, i+1)
}

// text draws line i of a side, filled to w columns.
func (p *painter) text(r row, i int, old bool, t tone, w int) string {
	c := p.doc.change
	from, lex := c.new, &p.doc.newLex
	if old {
		from, lex = c.old, &p.doc.oldLex
	}
	if w <= 0 || i < 0 || i >= len(from) {
		return ""
	}
	text := from[i]
	var end string // a note about what the text does not show
	switch {
	case len(from) == 1 && text == "":
		return p.ended("the file is empty", t, w)
	case i == len(from)-1 && text == "":
		return p.ended("⏎ a line end at the end", t, w)
	case i == len(from)-1:
		end = "⌀"
	}
	text, words, cut := drawn(text, p.words(r, i, old))
	if cut {
		return p.cells(text, nil, words, t, w, end)
	}
	return p.cells(text, lex.tokens(i), words, t, w, end)
}

// ended draws the row of a line that consists of its line end only.
func (p *painter) ended(note string, t tone, w int) string {
	note = ansi.Truncate(note, w, "")
	return paint(p.m.theme.style(look{tone: t}), pad(note, ansi.StringWidth(note), w))
}

// words returns the parts of a changed line that differ from its partner.
func (p *painter) words(r row, i int, old bool) []span {
	if r.hunk < 0 || p.reverted(r) {
		return nil
	}
	c := p.doc.change
	h := c.hunks[r.hunk]
	if old {
		if j := h.partner(i, -1); j >= 0 {
			spans, _ := changedWords(c.old[i], c.new[j])
			return spans
		}
		return nil
	}
	if j := h.partner(-1, i); j >= 0 {
		_, spans := changedWords(c.old[j], c.new[i])
		return spans
	}
	return nil
}

// cells draws untrusted text, filled to w columns, with marks where the text continues beyond the edge.
func (p *painter) cells(text string, tokens []token, words []span, t tone, w int, end string) string {
	skip := p.m.left
	l := layOut(text, skip, w)
	if l.right {
		l = layOut(text, skip, w-1)
	}
	var b, run strings.Builder
	var last look
	flush := func() {
		b.WriteString(paint(p.m.theme.style(last), run.String()))
		run.Reset()
	}
	put := func(s string, k look) {
		if k != last {
			flush()
			last = k
		}
		run.WriteString(s)
	}
	for i, c := range l.cells {
		k := look{tone: t, class: classAt(&tokens, c.at), word: spanAt(&words, c.at), mark: c.mark}
		if i == 0 && l.left && c.width == 1 {
			put("‹", look{tone: t})
			continue
		}
		put(c.text, k)
	}
	width := l.width
	switch {
	case l.right:
		put(strings.Repeat(" ", max(0, w-1-width))+"›", look{tone: t})
		width = w
	case end != "" && width < w:
		put(end, look{tone: t, mark: true})
		width++
	}
	put(strings.Repeat(" ", max(0, w-width)), look{tone: t})
	flush()
	return b.String()
}

// classAt returns the class of the byte at offset at. It drops earlier tokens, because callers ask in order.
func classAt(tokens *[]token, at int) class {
	for len(*tokens) > 0 && (*tokens)[0].to <= at {
		*tokens = (*tokens)[1:]
	}
	if len(*tokens) > 0 && (*tokens)[0].from <= at {
		return (*tokens)[0].class
	}
	return plainText
}

func spanAt(spans *[]span, at int) bool {
	for len(*spans) > 0 && (*spans)[0].to <= at {
		*spans = (*spans)[1:]
	}
	return len(*spans) > 0 && (*spans)[0].from <= at
}
