package tui

import (
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// A document is one proposal as it is being looked at: its change, and what has been computed to show it.
type document struct {
	path    string
	texts   control.Texts
	change  *change
	version int
	// known is the text that the companion has, with line feeds; what the change says is sent when it differs.
	known string
	lang  *language

	rows    []row // for made
	made    rowOptions
	oldLex  lexed
	newLex  lexed
	edited  bool // its text is not the proposal any more
	waiting bool // an edit of ours is on its way
	refused bool // our last edit was not taken, and what stands instead is being read
}

// newDocument takes the texts of a proposal, and what has become of it.
func newDocument(path string, t control.Texts, now string, version int) *document {
	d := &document{path: path, texts: t, version: version, lang: languageOf(path)}
	d.take(text.ToLF(now))
	// Hunks that are gone from the proposal are still its hunks.
	// But where the file has changed since, what it has now is none of theirs.
	if proposal := text.ToLF(t.New); proposal != d.known && t.Base == 0 {
		c := newChange(text.ToLF(t.Old), t.IsNew, proposal)
		if c.adopt(d.known) {
			d.set(c)
		}
	}
	return d
}

// take replaces the proposal by a text that was made elsewhere.
func (d *document) take(lf string) {
	d.known = lf
	if d.change != nil && d.change.text() == lf {
		return
	}
	if d.change != nil && d.change.adopt(lf) {
		d.forget()
		return
	}
	d.set(newChange(text.ToLF(d.texts.Old), d.texts.IsNew, lf))
}

func (d *document) set(c *change) {
	d.change = c
	d.oldLex, d.newLex = lexed{lang: d.lang, text: c.old}, lexed{lang: d.lang, text: c.new}
	d.forget()
}

// forget drops what was computed of the change.
func (d *document) forget() {
	d.rows = nil
	d.edited = d.change.text() != text.ToLF(d.texts.New)
}

// content is the text as it is now, with the line ends of the proposal (SPEC F-6).
func (d *document) content() string { return text.FromLF(d.texts.New, d.change.text()) }

// seen is what of the proposal stands here.
func (d *document) seen() control.Seen { return control.Seen{Version: d.version, Base: d.texts.Base} }

// layout returns the rows for these options.
func (d *document) layout(o rowOptions) []row {
	if d.rows == nil || d.made != o {
		d.rows, d.made = d.change.rows(o), o
	}
	return d.rows
}

// endings says how the lines of both texts end, "" where it is as everybody expects.
func (d *document) endings() string {
	name := func(s string) string {
		shape := text.ShapeOf(s)
		word := map[string]string{"\n": "LF", "\r\n": "CRLF", "\r": "CR"}[shape.EOL]
		if shape.Mixed {
			word = "mixed line ends"
		}
		if shape.BOM {
			word += " BOM"
		}
		return word
	}
	before, after := name(d.texts.Old), name(d.texts.New)
	if d.texts.IsNew {
		before = after
	}
	switch {
	case before == after && before == "LF":
		return ""
	case before == after:
		return before
	}
	return before + " → " + after
}

// adopt marks hunks as reverted so that the text comes out, and says whether it can.
func (c *change) adopt(lf string) bool {
	if len(c.hunks) == 0 || len(c.hunks) > 10000 {
		return false
	}
	before := make([]bool, len(c.hunks))
	target := splitText(lf)
	at, from := 0, 0 // in target, in c.new
	ok := true
	for i := range c.hunks {
		h := &c.hunks[i]
		before[i] = h.reverted
		n := h.newFrom - from
		ok = ok && begins(target, at, c.new[from:h.newFrom])
		at += n
		after := c.new[h.newTo:c.nextHunk(i)]
		switch {
		case ok && begins(target, at, c.new[h.newFrom:h.newTo]) && begins(target, at+h.newTo-h.newFrom, after):
			h.reverted = false
			at += h.newTo - h.newFrom
		case ok && begins(target, at, c.old[h.oldFrom:h.oldTo]):
			h.reverted = true
			at += h.oldTo - h.oldFrom
		default:
			ok = false
		}
		from = h.newTo
	}
	if ok && c.text() == lf {
		return true
	}
	for i := range c.hunks {
		c.hunks[i].reverted = before[i]
	}
	return false
}

// nextHunk is the line of the proposal at which the hunk after i begins.
func (c *change) nextHunk(i int) int {
	if i+1 < len(c.hunks) {
		return c.hunks[i+1].newFrom
	}
	return len(c.new)
}

// begins says whether text holds part at a line.
func begins(text lines, at int, part lines) bool {
	if at < 0 || at+len(part) > len(text) {
		return false
	}
	for i, l := range part {
		if text[at+i] != l {
			return false
		}
	}
	return true
}

// A lexed text is coloured as far as it was looked at.
type lexed struct {
	lang   *language
	text   lines
	states []lexState // at the beginning of each line that was reached
}

// tokens colours one line.
func (x *lexed) tokens(i int) []token {
	if x.lang == nil || i < 0 || i >= len(x.text) {
		return nil
	}
	if x.states == nil {
		x.states = append(x.states, 0)
	}
	for len(x.states) <= i {
		n := len(x.states) - 1
		_, next := x.lang.lex(x.text[n], x.states[n])
		x.states = append(x.states, next)
	}
	t, _ := x.lang.lex(x.text[i], x.states[i])
	return t
}
