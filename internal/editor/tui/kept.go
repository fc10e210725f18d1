package tui

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// A kept text is what the user wrote in an external editor, until the companion has it. It is not lost when the
// companion ends meanwhile, or the proposal has been decided.
type kept struct {
	path string // of the proposal
	file string // the file that holds it
	text string // with line feeds
}

// keep stores what the user wrote. It replaces an earlier text of the same proposal.
func (m *model) keep(id string, k kept) {
	m.drop(id)
	m.kept[id] = k
}

// drop removes a text that the companion has.
func (m *model) drop(id string) {
	if k, ok := m.kept[id]; ok {
		_ = os.RemoveAll(filepath.Dir(k.file))
		delete(m.kept, id)
	}
}

// arrived drops a kept text once the companion has taken it.
func (m *model) arrived(id, text string) {
	if k, ok := m.kept[id]; ok && k.text == text {
		m.drop(id)
	}
}

// apply gives a kept text to its proposal as soon as the proposal is here: at once, or when it returns.
func (m *model) apply(id string) tea.Cmd {
	k, ok := m.kept[id]
	d := m.docs[id]
	if !ok || d == nil {
		return nil
	}
	known := d.known
	d.replace(k.text)
	d.known = known // until the edit is sent
	if id == m.current && m.past == nil {
		m.hunk = min(m.hunk, max(0, len(d.change.hunks)-1))
		m.show(m.hunk)
	}
	m.say("your edit is part of the proposal now")
	return m.send(id, d)
}

// editedInEditor takes the text that the user's editor left.
func (m *model) editedInEditor(msg editedMsg) tea.Cmd {
	content, err := takeEdited(msg)
	switch {
	case err != nil:
		m.complain(err.Error())
		return nil
	case content == msg.text:
		m.say("nothing was changed")
		return nil
	}
	m.keep(msg.id, kept{msg.path, msg.file, text.ToLF(content)})
	switch {
	case m.docs[msg.id] != nil:
		return m.apply(msg.id)
	case contains(m.queue, msg.id): // the proposal's texts are being loaded
	case m.companion == nil || !m.come:
		m.complain(fmt.Sprintf("the companion has ended while you were editing; your edit is kept in %s, and taken when the proposal is back", msg.file))
	default:
		m.complain(fmt.Sprintf("the proposal is not open any more; your edit is kept in %s", msg.file))
	}
	return nil
}

// whereKept completes a message about a refused edit with the file that keeps it.
func (m *model) whereKept(id string) string {
	if k, ok := m.kept[id]; ok {
		return "; your edit is kept in " + k.file
	}
	return ""
}

// leftovers lists the edits that no companion has taken.
func (m *model) leftovers() []string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(m.kept)) {
		k := m.kept[id]
		all = append(all, fmt.Sprintf("your edit of the proposal for %s was not taken; it is kept in %s", m.name(k.path), k.file))
	}
	return all
}
