package tui

import (
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// A document is one proposal under review: its change, and everything computed to show it.
type document struct {
	path    string
	texts   control.Texts
	change  *change
	version int
	// known is the text that the companion has, with line feeds. When the change differs from it, the change is sent.
	known string
	lang  *language

	rows    []row // computed for made
	made    rowOptions
	oldLex  lexed
	newLex  lexed
	edited  bool // its text differs from the proposal
	waiting bool // one of our edits is on its way
	refused bool // our last edit was refused; the text that replaced it is being read
}

// newDocument makes a document from a proposal's texts and its current text.
func newDocument(path string, t control.Texts, now string, version int) *document {
	d := &document{path: path, texts: t, version: version, lang: languageOf(path)}
	d.replace(text.ToLF(now))
	// Hunks that the user has left out are still hunks of the proposal. But once the file has changed, its new
	// content belongs to no hunk.
	if proposal := text.ToLF(t.New); proposal != d.known && t.Base == 0 {
		c := newChange(text.ToLF(t.Old), t.IsNew, proposal)
		if c.adopt(d.known) {
			d.set(c)
		}
	}
	return d
}

// replace replaces the proposal by a text made elsewhere.
func (d *document) replace(lf string) {
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

// forget drops everything computed from the change.
func (d *document) forget() {
	d.rows = nil
	d.edited = d.change.text() != text.ToLF(d.texts.New)
}

// content is the current text, with the proposal's line ends (SPEC F-6).
func (d *document) content() string { return text.FromLF(d.texts.New, d.change.text()) }

// seen returns the version and base shown here.
func (d *document) seen() control.Seen { return control.Seen{Version: d.version, Base: d.texts.Base} }

// layout returns the rows for these options.
func (d *document) layout(o rowOptions) []row {
	if d.rows == nil || d.made != o {
		d.rows, d.made = d.change.rows(o), o
	}
	return d.rows
}

// endings describes the line ends of both texts, "" when nothing is unusual.
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

// adopt reverts hunks so that the text becomes lf, and reports whether that is possible.
func (c *change) adopt(lf string) bool {
	if len(c.hunks) == 0 || len(c.hunks) > 10000 {
		return false
	}
	before := make([]bool, len(c.hunks))
	target := splitText(lf)
	at, from := 0, 0 // line in target, line in c.new
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

// nextHunk returns the line of the proposal where the hunk after i begins.
func (c *change) nextHunk(i int) int {
	if i+1 < len(c.hunks) {
		return c.hunks[i+1].newFrom
	}
	return len(c.new)
}

// begins reports whether text holds part at line at.
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

// A lexed text is coloured as far as it has been shown.
type lexed struct {
	lang   *language
	text   lines
	states []lexState // at the beginning of each line reached so far
}

// tokens returns the colours of line i.
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
