package tui

import (
	"path/filepath"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/control"
)

// startled is how long a proposal that came up by itself cannot be decided: the key may have been meant for the one
// before.
const startled = 400 * time.Millisecond

// A layoutMode is how diffs are laid out.
type layoutMode int

const (
	automatic layoutMode = iota
	sideBySide
	unified
)

// sideFrom is the width from which diffs are side by side by default.
const sideFrom = 120

// A model is the state of the reviewer between two messages. It belongs to one goroutine.
type model struct {
	o     Options
	now   func() time.Time
	w, h  int
	theme theme

	companion Companion // nil while there is none
	problem   string    // why there is no companion
	fatal     error     // the error that ends the reviewer

	queue    control.Queue
	come     bool // a queue has arrived
	current  string
	since    time.Time // when current came up by itself; zero when the user selected it
	docs     map[string]*document
	deciding map[string]string // our pending decisions, by diff
	kept     map[string]kept   // edits that the companion does not have yet, by diff

	top, left int // scroll position in the diff, in rows and columns
	hunk      int // the current hunk
	mode      layoutMode
	unfolded  bool

	notice notice
	dialog dialog // nil when no dialog is open
	past   *pastView
}

// A notice is the line above the keys.
type notice struct {
	text string
	bad  bool
}

func newModel(o Options) *model {
	return &model{
		o: o, now: time.Now, theme: newTheme(startsDark(o), o.NoColor), docs: map[string]*document{}, deciding: map[string]string{}, kept: map[string]kept{},
	}
}

// program adapts the model to Bubble Tea.
type program struct{ m *model }

// Init implements tea.Model.
func (p program) Init() tea.Cmd {
	if p.m.o.NoColor || p.m.o.Theme != "" {
		return nil
	}
	return tea.RequestBackgroundColor
}

// Update implements tea.Model.
func (p program) Update(msg tea.Msg) (tea.Model, tea.Cmd) { return p, p.m.update(msg) }

// View implements tea.Model.
func (p program) View() tea.View {
	v := tea.NewView(p.m.frame().String())
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "pollux review"
	return v
}

// diff returns the current proposal, nil when nothing waits.
func (m *model) diff() *control.Diff {
	if i := m.index(); i >= 0 {
		return &m.queue.Diffs[i]
	}
	return nil
}

func (m *model) index() int {
	return slices.IndexFunc(m.queue.Diffs, func(d control.Diff) bool { return d.ID == m.current })
}

// doc returns the document on screen: the current proposal or a history entry; nil until its texts arrive.
func (m *model) doc() *document {
	if m.past != nil {
		return m.past.doc
	}
	return m.docs[m.current]
}

// choose makes a diff the current one; byUser means that it did not come up by itself.
func (m *model) choose(id string, byUser bool) {
	if id == m.current {
		return
	}
	m.current, m.since = id, time.Time{}
	if !byUser {
		m.since = m.now()
	}
	m.home()
}

// home goes to the first change on screen.
func (m *model) home() {
	m.top, m.left, m.hunk = 0, 0, 0
	m.show(0)
	m.aside()
}

// side reports whether diffs are side by side now.
func (m *model) side() bool {
	switch m.mode {
	case sideBySide:
		return true
	case unified:
		return false
	}
	return m.w >= sideFrom
}

func (m *model) rowOptions() rowOptions {
	o := rowOptions{side: m.side(), context: 3}
	if m.unfolded {
		o.context = -1
	}
	return o
}

// rows returns the rows of the document on screen.
func (m *model) rows() []row {
	if d := m.doc(); d != nil {
		return d.layout(m.rowOptions())
	}
	return nil
}

// scroll moves by rows, within the text.
func (m *model) scroll(by int) {
	m.top = max(0, min(m.top+by, len(m.rows())-m.bodyHeight()))
}

// show scrolls a hunk into view, with a little before it.
func (m *model) show(hunk int) {
	rows := m.rows()
	i := slices.IndexFunc(rows, func(r row) bool { return r.hunk == hunk })
	if i < 0 {
		m.scroll(0)
		return
	}
	height := m.bodyHeight()
	last := i
	for last+1 < len(rows) && rows[last+1].hunk == hunk {
		last++
	}
	if i < m.top || last >= m.top+height {
		m.top = i - min(3, height/4)
	}
	m.scroll(0)
}

// goHunk goes to another hunk.
func (m *model) goHunk(by int) {
	d := m.doc()
	if d == nil || len(d.change.hunks) == 0 {
		return
	}
	m.hunk = max(0, min(m.hunk+by, len(d.change.hunks)-1))
	m.show(m.hunk)
	m.aside()
}

// aside scrolls sideways when everything that differs in the hunk's first line lies outside the window.
func (m *model) aside() {
	d := m.doc()
	if d == nil || m.hunk >= len(d.change.hunks) {
		return
	}
	h := d.change.hunks[m.hunk]
	if h.oldFrom >= h.oldTo || h.newFrom >= h.newTo {
		return
	}
	_, words := changedWords(d.change.old[h.oldFrom], d.change.new[h.newFrom])
	m.left = 0
	if len(words) == 0 {
		return
	}
	room := m.w
	if m.side() {
		room /= 2
	}
	room -= 16 // line numbers, marks, and a little of the word itself
	part, words, _ := drawn(d.change.new[h.newFrom], words)
	if at := columnOf(part, words[0].from); room > 0 && at > room {
		m.left = at - room/2
	}
}

// follow makes the visible hunk current, after scrolling.
func (m *model) follow() {
	rows := m.rows()
	bottom := min(m.top+m.bodyHeight(), len(rows))
	if m.top >= bottom {
		return
	}
	view := rows[m.top:bottom]
	if slices.ContainsFunc(view, func(r row) bool { return r.hunk == m.hunk }) {
		return
	}
	for _, r := range view {
		if r.hunk >= 0 {
			m.hunk = r.hunk
			return
		}
	}
}

func (m *model) say(text string)      { m.notice = notice{text: text} }
func (m *model) complain(text string) { m.notice = notice{text, true} }

// name is a file's path as shown: relative to the workspace where possible.
func (m *model) name(path string) string {
	if rel, err := filepath.Rel(m.o.Folder, path); m.o.Folder != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
