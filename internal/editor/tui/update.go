package tui

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// update handles one message.
func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.show(m.hunk)
	case tea.BackgroundColorMsg:
		m.theme.dark, m.theme.colours = msg.IsDark(), !m.o.NoColor
	case tea.ColorProfileMsg:
		m.theme.few = msg.String() != "TrueColor"
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		if m.dialog != nil {
			return m.dialog.paste(m, msg.Content)
		}
	case tea.MouseWheelMsg:
		return m.wheel(msg)
	case tea.MouseClickMsg:
		return m.click(msg)
	default:
		return m.heard(msg)
	}
	return nil
}

// heard handles a message of the companion.
func (m *model) heard(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case joinedMsg:
		m.companion, m.problem = msg.c, ""
		if m.past != nil {
			return m.loadPast()
		}
	case lostMsg:
		m.lost(msg.err)
	case fatalMsg:
		m.fatal = msg.err
		return tea.Quit
	case queueMsg:
		return m.showQueue(msg.queue)
	case loadedMsg:
		return m.loaded(msg)
	case textMsg:
		m.textCame(msg)
	case sentMsg:
		return m.sent(msg)
	case decidedMsg:
		m.decided(msg)
	case ruleMsg:
		if msg.err != nil {
			m.complain(msg.err.Error())
		} else {
			m.say(msg.what)
		}
	case editedMsg:
		return m.editedInEditor(msg)
	case pastMsg, entryMsg, undoneMsg:
		return m.heardPast(msg)
	}
	return nil
}

// lost forgets everything that belonged to a companion that has gone.
func (m *model) lost(err error) {
	m.companion, m.problem = nil, err.Error()
	m.queue, m.come = control.Queue{}, false
	m.current = ""
	clear(m.docs)
	clear(m.deciding)
	if m.dialog != nil && m.dialog.about() != "" {
		m.dialog = nil
	}
}

// showQueue shows a queue in place of the one before.
func (m *model) showQueue(q control.Queue) tea.Cmd {
	before, at := m.queue, m.index()
	m.queue, m.come = q, true
	for id := range m.docs {
		if !contains(q, id) {
			delete(m.docs, id)
		}
	}
	if m.current != "" && !contains(q, m.current) {
		m.gone(before)
	}
	if m.current == "" && len(q.Diffs) > 0 {
		m.choose(q.Diffs[max(0, min(at, len(q.Diffs)-1))].ID, false)
	}
	if len(q.Diffs) == 0 && m.o.UntilDone {
		return tea.Quit
	}
	var past tea.Cmd
	if m.past != nil && q.Past != before.Past {
		past = m.loadPast()
	}
	return tea.Batch(m.fetch(), past)
}

func contains(q control.Queue, id string) bool {
	return slices.ContainsFunc(q.Diffs, func(d control.Diff) bool { return d.ID == id })
}

// gone leaves the current diff after it has been decided: here, elsewhere, or by its owner.
func (m *model) gone(before control.Queue) {
	id := m.current
	i := slices.IndexFunc(before.Diffs, func(d control.Diff) bool { return d.ID == id })
	if _, ours := m.deciding[id]; !ours && i >= 0 {
		outcome := "decided"
		for _, e := range m.queue.Ended {
			if e.ID == id {
				outcome = e.Outcome
			}
		}
		m.say(fmt.Sprintf("%s was %s elsewhere", m.name(before.Diffs[i].Path), outcome))
	}
	delete(m.deciding, id)
	if m.dialog != nil && m.dialog.about() == id {
		m.dialog = nil // the question's diff is gone
	}
	m.current = ""
	if m.past == nil {
		m.top, m.left, m.hunk = 0, 0, 0
	}
}

// fetch reads the texts of the current diff unless they are here.
func (m *model) fetch() tea.Cmd {
	d := m.diff()
	if d == nil {
		return nil
	}
	doc := m.docs[d.ID]
	switch {
	case doc == nil:
		return m.load(d.ID, d.Path)
	case doc.texts.Base != d.Base && !doc.waiting:
		return m.load(d.ID, d.Path)
	case doc.version < d.Version && !doc.waiting:
		return m.reload(d.ID)
	}
	return nil
}

func (m *model) loaded(msg loadedMsg) tea.Cmd {
	switch {
	case !contains(m.queue, msg.id):
	case msg.err != nil:
		m.complain(msg.err.Error())
	case m.docs[msg.id] == nil:
		m.docs[msg.id] = newDocument(msg.path, msg.texts, msg.text, msg.version)
		if msg.id == m.current && m.past == nil {
			m.home()
		}
		return m.apply(msg.id)
	case !m.docs[msg.id].waiting:
		m.based(msg)
		return m.fetch()
	}
	return nil
}

// textCame takes an edit made elsewhere.
func (m *model) textCame(msg textMsg) {
	d := m.docs[msg.id]
	if d == nil || msg.err != nil || d.waiting || msg.version < d.version {
		return
	}
	refused := d.refused
	d.version, d.refused = msg.version, false
	lf := text.ToLF(msg.text)
	if lf == d.change.text() {
		d.known = lf
		return
	}
	d.replace(lf)
	if msg.id == m.current && m.past == nil {
		if !refused {
			m.say("the proposal was edited elsewhere")
		}
		m.goHunk(0)
	}
}

// sent continues with what has changed while an edit was on its way.
func (m *model) sent(msg sentMsg) tea.Cmd {
	if msg.err == nil {
		m.arrived(msg.id, msg.text)
	}
	d := m.docs[msg.id]
	if d == nil || msg.to != m.companion { // the document was dropped or reloaded since
		return nil
	}
	d.waiting = false
	if msg.err != nil {
		d.known, d.refused = "", true // the companion's text is unknown
		m.complain(msg.err.Error() + m.whereKept(msg.id))
		return m.reload(msg.id)
	}
	d.version = max(d.version, msg.version)
	if cmd := m.send(msg.id, d); cmd != nil {
		return cmd
	}
	return m.fetch()
}

func (m *model) decided(msg decidedMsg) {
	if msg.err == nil {
		m.drop(msg.id) // the decision included it, or it was rejected with the rest
		m.say(msg.what)
		return
	}
	delete(m.deciding, msg.id)
	m.complain(msg.err.Error())
}
