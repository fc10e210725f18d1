package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// A pastView is the history on the screen (SPEC F-12).
type pastView struct {
	come    bool
	entries []control.PastProposal // newest first
	at      int
	doc     *document // of the entry; nil until its texts arrive
	shown   string    // the entry of doc
}

// entry returns the selected entry, nil when there is none.
func (p *pastView) entry() *control.PastProposal {
	if p.at < len(p.entries) {
		return &p.entries[p.at]
	}
	return nil
}

// choose selects another entry.
func (p *pastView) choose(m *model, i int) tea.Cmd {
	p.at = max(0, min(i, len(p.entries)-1))
	e := p.entry()
	if e == nil || e.ID == p.shown {
		return nil
	}
	p.doc, p.shown = nil, e.ID
	m.top, m.left, m.hunk = 0, 0, 0
	return m.loadEntry(*e)
}

// heardPast handles the companion's messages about the history.
func (m *model) heardPast(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case undoneMsg:
		if msg.err != nil {
			m.complain(msg.err.Error())
			return nil
		}
		m.say(msg.name + " has its earlier text again")
	case pastMsg:
		if m.past == nil {
			return nil
		}
		if msg.err != nil {
			m.complain(msg.err.Error())
			return nil
		}
		m.past.come = true
		m.past.entries = msg.entries
		i := slices.IndexFunc(msg.entries, func(e control.PastProposal) bool { return e.ID == m.past.shown })
		return m.past.choose(m, max(0, i))
	case entryMsg:
		if m.past == nil || m.past.shown != msg.entry.ID {
			return nil
		}
		if msg.err != nil {
			m.complain(msg.err.Error())
			return nil
		}
		m.past.doc = pastDocument(msg.entry, msg.texts)
		m.home()
	}
	return nil
}

// pastDocument shows what was accepted; otherwise what was proposed, with the user's edits.
func pastDocument(e control.PastProposal, t control.Texts) *document {
	final := t.Final
	if e.Outcome == review.Rejected.String() && t.Final == "" {
		final = t.New
	}
	return newDocument(e.Path, control.Texts{Old: t.Old, IsNew: t.IsNew, New: final}, final, 0)
}

// pressPast handles a key in the history.
func (m *model) pressPast(key string) tea.Cmd {
	switch key {
	case "esc", "h", "q":
		m.past = nil
		m.home()
		return m.fetch()
	case "up", "shift+tab":
		return m.past.choose(m, m.past.at-1)
	case "down", "tab":
		return m.past.choose(m, m.past.at+1)
	case "u":
		return m.askUndo()
	}
	return nil
}

func (m *model) askUndo() tea.Cmd {
	e := m.past.entry()
	switch {
	case e == nil:
	case !e.Undoable:
		m.say("this proposal was rejected: nothing was written, and there is nothing to undo")
	default:
		entry := *e
		m.dialog = &confirm{text: "Give " + m.name(e.Path) + " the text back that it had before?", yes: func(m *model) tea.Cmd {
			return m.undo(entry)
		}}
	}
	return nil
}

func (m *model) drawPast(f *frame) {
	p := m.past
	if len(p.entries) == 0 {
		text := "The history is empty."
		if !p.come {
			text = "Reading the history…"
		}
		f.add("")
		f.add("  " + text)
		return
	}
	n := m.listed()
	from := max(0, min(p.at-n/2, len(p.entries)-n))
	for i, e := range window(p.entries, p.at, n) {
		mark, style := "  ", ansi.Style{}
		if from+i == p.at {
			mark, style = "▸ ", m.theme.button()
		}
		f.zone(zone{from: 0, to: f.w, entry: from + i + 1})
		f.add(paint(style, between(mark+plain(m.name(e.Path), max(10, f.w-40)), m.became(e)+" ", f.w)))
	}
	e := p.entry()
	title := " before and after"
	if e.Outcome == review.Rejected.String() {
		title = " before and as it was proposed"
	}
	var right []string
	if p.doc != nil {
		right = describe(p.doc, m.hunk)
	}
	f.add(paint(m.theme.button(), between(title, strings.Join(right, " · ")+" ", f.w)))
	m.drawBody(f)
}

// became says how a proposal ended, and when.
func (m *model) became(e control.PastProposal) string {
	how := e.Outcome
	if e.Edited {
		how += ", edited"
	}
	if e.Policy {
		how += ", by a rule"
	}
	if e.Undone {
		how += ", undone"
	}
	return fmt.Sprintf("%s · %s · %s", how, plain(e.Owner, 24), when(e.At, m.now()))
}

// when formats a time as briefly as possible.
func when(at, now time.Time) string {
	at = at.Local()
	if y, d := now.Year(), now.YearDay(); at.Year() == y && at.YearDay() == d {
		return at.Format("15:04")
	}
	return at.Format("Jan _2 15:04")
}
