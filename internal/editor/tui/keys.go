package tui

import (
	"strconv"

	tea "charm.land/bubbletea/v2"
)

// wheelRows is how many rows one turn of the wheel scrolls.
const wheelRows = 3

// key handles a key press.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	return m.press(msg.String(), msg.Text)
}

// press handles a key by its name and the text it types.
func (m *model) press(key, typed string) tea.Cmd {
	if m.dialog != nil {
		return m.dialog.key(m, key, typed)
	}
	m.notice = notice{}
	if m.move(key) {
		return nil
	}
	switch key {
	case "?":
		m.dialog = &help{}
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	case "ctrl+c":
		return tea.Quit
	case "v":
		m.mode = (m.mode + 1) % 3
		m.say([]string{"side by side where the window is wide enough", "side by side", "unified"}[m.mode])
		m.show(m.hunk)
	case "f":
		m.unfolded = !m.unfolded
		m.show(m.hunk)
	default:
		if m.past != nil {
			return m.pressPast(key)
		}
		return m.pressReview(key)
	}
	return nil
}

// move handles a key that moves through the diff.
func (m *model) move(key string) bool {
	page := max(1, m.bodyHeight()-2)
	switch key {
	case "down", "j", "ctrl+e":
		m.scroll(1)
	case "up", "k", "ctrl+y":
		m.scroll(-1)
	case "pgdown", "space", "ctrl+f", "ctrl+d":
		m.scroll(page)
	case "pgup", "b", "ctrl+b", "ctrl+u":
		m.scroll(-page)
	case "home", "g":
		m.scroll(-len(m.rows()))
	case "end", "G":
		m.scroll(len(m.rows()))
	case "right":
		m.left += 8
		return true
	case "left":
		m.left = max(0, m.left-8)
		return true
	case "0":
		m.left = 0
		return true
	case "n", "]":
		m.goHunk(1)
		return true
	case "N", "[":
		m.goHunk(-1)
		return true
	default:
		return false
	}
	if m.past != nil && (key == "down" || key == "up") {
		return false
	}
	m.follow()
	return true
}

// pressReview handles a key for the queue.
func (m *model) pressReview(key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "tab":
		return m.step(1)
	case "shift+tab":
		return m.step(-1)
	case "A":
		m.dialog = m.newPolicy()
		return nil
	case "p":
		return m.pause()
	case "h":
		m.past = &pastView{}
		return m.loadPast()
	}
	if n, err := strconv.Atoi(key); err == nil && n >= 1 && n <= len(m.queue.Diffs) {
		m.choose(m.queue.Diffs[n-1].ID, true)
		return m.fetch()
	}
	return m.pressDiff(key)
}

// pressDiff handles a key for the current proposal.
func (m *model) pressDiff(key string) tea.Cmd {
	d, doc := m.diff(), m.doc()
	if d == nil || doc == nil {
		return nil
	}
	if d.ReadOnly != "" && (key == "x" || key == "X" || key == "e") {
		m.say(d.ReadOnly)
		return nil
	}
	switch key {
	case "x":
		doc.change.toggle(m.hunk)
	case "X":
		all := true
		for _, h := range doc.change.hunks {
			all = all && h.reverted
		}
		for i := range doc.change.hunks {
			doc.change.hunks[i].reverted = !all
		}
	case "e":
		return m.edit(d.ID, d.Path, doc)
	case "a":
		return m.accept()
	case "r":
		return m.reject()
	default:
		return nil
	}
	doc.forget()
	m.scroll(0)
	return m.send(d.ID, doc)
}

// step selects another proposal.
func (m *model) step(by int) tea.Cmd {
	n := len(m.queue.Diffs)
	if n == 0 {
		return nil
	}
	m.choose(m.queue.Diffs[((m.index()+by)%n+n)%n].ID, true)
	return m.fetch()
}

// ready reports whether the current proposal may be decided: it has been on screen for long enough.
func (m *model) ready() bool {
	if _, asked := m.deciding[m.current]; asked {
		return false
	}
	if !m.since.IsZero() && m.now().Sub(m.since) < startled {
		m.say("this proposal has only just come up; look at it, and press the key again")
		return false
	}
	return true
}

// accept accepts what is shown; the companion refuses an outdated text.
func (m *model) accept() tea.Cmd {
	if !m.ready() {
		return nil
	}
	d := *m.diff()
	name := m.name(d.Path)
	if d.Conflict != nil {
		m.dialog = newStandoff(d, name)
		return nil
	}
	if d.Unsaved {
		m.dialog = &confirm{d.ID, name + " has unsaved changes in your editor. Accept all the same?", func(m *model) tea.Cmd {
			return m.decide(d.ID, name, true)
		}}
		return nil
	}
	return m.decide(d.ID, name, true)
}

func (m *model) reject() tea.Cmd {
	if !m.ready() {
		return nil
	}
	d := *m.diff()
	name := m.name(d.Path)
	if m.doc().edited {
		m.dialog = &confirm{d.ID, "Reject " + name + " and lose your edits?", func(m *model) tea.Cmd {
			return m.decide(d.ID, name, false)
		}}
		return nil
	}
	return m.decide(d.ID, name, false)
}

// wheel scrolls.
func (m *model) wheel(msg tea.MouseWheelMsg) tea.Cmd {
	if m.dialog != nil {
		return nil
	}
	switch msg.Button {
	case tea.MouseWheelDown:
		m.scroll(wheelRows)
	case tea.MouseWheelUp:
		m.scroll(-wheelRows)
	case tea.MouseWheelLeft:
		m.left = max(0, m.left-4)
	case tea.MouseWheelRight:
		m.left += 4
	}
	m.follow()
	return nil
}

// click handles the left button.
func (m *model) click(msg tea.MouseClickMsg) tea.Cmd {
	if msg.Button != tea.MouseLeft {
		return nil
	}
	z, ok := m.frame().at(msg.X, msg.Y)
	switch {
	case !ok:
	case z.key != "":
		return m.press(z.key, "")
	case m.dialog != nil:
	case z.diff != "":
		m.choose(z.diff, true)
		return m.fetch()
	case z.entry > 0:
		return m.past.choose(m, z.entry-1)
	case z.hunk > 0:
		m.hunk = z.hunk - 1
		if msg.X == 0 && m.past == nil { // the bar in front of a hunk
			return m.pressDiff("x")
		}
	}
	return nil
}
