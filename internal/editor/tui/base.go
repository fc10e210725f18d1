package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/control"
)

// based takes new texts for a proposal whose file has changed (SPEC F-13).
func (m *model) based(msg loadedMsg) {
	before := m.docs[msg.id]
	m.docs[msg.id] = newDocument(msg.path, msg.texts, msg.text, msg.version)
	if msg.id != m.current || m.past != nil {
		return
	}
	m.home()
	d, name := m.diff(), m.name(msg.path)
	switch {
	case d.Conflict != nil:
		m.complain(name + ": " + d.Conflict.Reason)
	case before.texts.Base != msg.texts.Base:
		m.complain(name + " has changed on disk; this is the proposal on what it holds now")
	}
}

// conflicting returns the place of the current conflict that covers a line of the proposal, or nil.
func (m *model) conflicting(line int) *control.Place {
	d := m.diff()
	if d == nil || d.Conflict == nil || line < 0 || m.past != nil {
		return nil
	}
	for i, p := range d.Conflict.Places {
		if line >= p.Start && (line < p.End || p.Start == p.End && line == p.Start) {
			return &d.Conflict.Places[i]
		}
	}
	return nil
}

// A standoff asks which side wins: the proposal or the change on disk.
type standoff struct {
	id   string
	text string
	keys []button
}

func newStandoff(d control.Diff, name string) *standoff {
	s := &standoff{id: d.ID, text: name + ": " + d.Conflict.Reason + "."}
	s.keys = append(s.keys, button{"k", "keep the proposal"})
	if len(d.Conflict.Places) > 0 {
		s.text = name + " has changed in the same lines (!). On disk: " + excerpt(d.Conflict.Places[0].Text)
		s.keys = append(s.keys, button{"t", "take the file's lines"})
	}
	s.keys = append(s.keys, button{"n", "not yet"})
	return s
}

// excerpt returns the first line of lines, with "…" when more follow.
func excerpt(lines string) string {
	first, rest, _ := strings.Cut(lines, "\n")
	switch {
	case lines == "":
		return "nothing"
	case rest != "":
		return first + " …"
	}
	return first
}

func (s *standoff) key(m *model, key, _ string) tea.Cmd {
	switch key {
	case "k", "K":
		m.dialog = nil
		return m.resolve(s.id, false)
	case "t", "T":
		if len(s.keys) > 2 {
			m.dialog = nil
			return m.resolve(s.id, true)
		}
	case "n", "N", "esc", "q", "ctrl+c":
		m.dialog = nil
	}
	return nil
}
func (s *standoff) paste(*model, string) tea.Cmd { return nil }
func (s *standoff) about() string                { return s.id }
func (s *standoff) whole() bool                  { return false }
func (s *standoff) draw(*model, *frame)          {}
func (s *standoff) question() string             { return s.text }
func (s *standoff) buttons(*model) []button      { return s.keys }

// resolve ends a conflict with the user's choice.
func (m *model) resolve(id string, theirs bool) tea.Cmd {
	doc := m.docs[id]
	if doc == nil {
		return nil
	}
	seen := doc.seen()
	what := "the proposal stands over the change on disk; accept it now, or go on"
	if theirs {
		what = "the file's lines are part of the proposal now"
	}
	return m.ask(func(ctx context.Context, c Companion) tea.Msg {
		return ruleMsg{what, c.Resolve(ctx, id, seen, theirs)}
	})
}
