package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/pollux-companion/pollux/internal/control"
)

// maxListed is how many proposals the list above the diff shows.
const maxListed = 5

// frame draws everything.
func (m *model) frame() *frame {
	f := &frame{w: max(m.w, 1), h: max(m.h, 1)}
	if m.w == 0 || m.h == 0 {
		return f // the terminal's size is unknown
	}
	m.drawHead(f)
	switch {
	case m.dialog != nil && m.dialog.whole():
		m.dialog.draw(m, f)
		f.fill(f.h - 1)
		m.drawKeys(f, m.dialog.buttons(m))
		return f
	case m.past != nil:
		m.drawPast(f)
	case len(m.queue.Diffs) == 0:
		m.drawEmpty(f)
	default:
		m.drawQueue(f)
		m.drawTitle(f)
		m.drawBody(f)
	}
	f.fill(f.h - 2)
	m.drawNotice(f)
	m.drawKeys(f, m.keysShown())
	return f
}

// listed returns how many rows the list of proposals takes.
func (m *model) listed() int {
	n := len(m.queue.Diffs)
	if m.past != nil {
		return min(max(1, len(m.past.entries)), max(1, min(8, m.h/4)))
	}
	if n < 2 {
		return 0
	}
	return min(n, maxListed, max(0, m.h/4))
}

// bodyHeight returns how many rows the diff has: all but header, list, title, notice and keys.
func (m *model) bodyHeight() int { return max(1, m.h-4-m.listed()) }

func (m *model) drawHead(f *frame) {
	left := " pollux review"
	if m.o.Folder != "" {
		left += "  " + plain(m.o.Folder, max(10, f.w/2))
	}
	var right []string
	switch n := len(m.queue.Diffs); {
	case m.companion == nil:
		right = append(right, "not connected")
	case n == 1:
		right = append(right, "1 waits")
	case n > 1:
		right = append(right, fmt.Sprintf("%d wait", n))
	}
	switch n := m.queue.Sessions; {
	case m.companion == nil:
	case n == 1:
		right = append(right, "1 CLI")
	default:
		right = append(right, fmt.Sprintf("%d CLIs", n))
	}
	if n := len(m.queue.Troubles); n > 0 && m.companion != nil {
		right = append([]string{"a problem"}, right...)
	}
	switch n := len(m.queue.Rules); {
	case n == 1:
		right = append(right, "1 rule in force")
	case n > 1:
		right = append(right, fmt.Sprintf("%d rules in force", n))
	}
	f.add(paint(m.theme.bar(), between(left, strings.Join(right, " · ")+" ", f.w)))
}

func (m *model) drawEmpty(f *frame) {
	lines := []string{"Nothing waits for you.", "", "What an agent, or pollux diff, wants to change comes up here."}
	switch {
	case m.companion == nil && m.problem != "":
		lines = []string{"No companion is connected; looking for one.", ""}
		for l := range strings.SplitSeq(m.problem, "\n") {
			lines = append(lines, wrap(plain(strings.TrimRight(l, "\r"), 1000), f.w-4)...)
		}
	case m.companion == nil || !m.come:
		lines = []string{"Connecting…"}
	}
	if m.companion != nil {
		if m.queue.Sharing != "" {
			lines = append(append(lines, ""), wrap(plain(m.queue.Sharing, 1000), f.w-4)...)
		}
		for _, t := range m.queue.Troubles {
			lines = append(append(lines, ""), wrap(plain(t.What+"; "+t.Do, 1000), f.w-4)...)
		}
	}
	f.fill(1 + max(0, (f.h-3-len(lines))/2))
	for _, l := range lines {
		w := ansi.StringWidth(l)
		f.add(strings.Repeat(" ", max(0, (f.w-w)/2)) + l)
	}
}

// wrap breaks harmless text at blanks.
func wrap(text string, width int) []string {
	return strings.Split(ansi.Wrap(text, max(10, width), ""), "\n")
}

// drawQueue lists the proposals around the current one.
func (m *model) drawQueue(f *frame) {
	n := m.listed()
	for _, d := range window(m.queue.Diffs, m.index(), n) {
		mark, style := "  ", ansi.Style{}
		if d.ID == m.current {
			mark, style = "▸ ", m.theme.button()
		}
		f.zone(zone{from: 0, to: f.w, diff: d.ID})
		f.add(paint(style, between(mark+plain(m.name(d.Path), max(10, f.w-30)), m.about(d)+" ", f.w)))
	}
}

// window returns the part of a list that shows item i in n rows.
func window[T any](list []T, i, n int) []T {
	from := max(0, min(i-n/2, len(list)-n))
	return list[from:min(len(list), from+n)]
}

// about describes a proposal beyond its name.
func (m *model) about(d control.Diff) string {
	parts := []string{plain(d.Owner, 24)}
	if d.Edited {
		parts = append(parts, "edited")
	}
	return strings.Join(parts, " · ")
}

// drawTitle draws the title of the diff.
func (m *model) drawTitle(f *frame) {
	d := m.diff()
	right := []string{}
	if doc := m.doc(); doc != nil {
		right = append(right, describe(doc, m.hunk)...)
	}
	if d.Unsaved {
		right = append(right, "unsaved in your editor")
	}
	if d := m.diff(); d != nil && m.past == nil && d.Conflict != nil {
		right = append(right, "conflict")
	}
	if d.ReadOnly != "" {
		right = append(right, "read-only")
	}
	if d.IsNew {
		right = append([]string{"new file"}, right...)
	}
	left := " " + plain(m.name(d.Path), max(8, f.w-8))
	if m.listed() == 0 {
		left += "  " + plain(d.Owner, 24)
	}
	f.add(paint(m.theme.button(), between(left, strings.Join(right, " · ")+" ", f.w)))
}

// describe gives the size of a change and the user's position in it.
func describe(doc *document, hunk int) []string {
	added, removed := doc.change.count()
	parts := []string{fmt.Sprintf("+%d −%d", added, removed)}
	if n := len(doc.change.hunks); n == 0 {
		parts = append(parts, "no difference")
	} else {
		at := fmt.Sprintf("hunk %d/%d", hunk+1, n)
		if hunk < n && doc.change.hunks[hunk].reverted {
			at += " reverted"
		}
		parts = append(parts, at)
	}
	if e := doc.endings(); e != "" {
		parts = append(parts, e)
	}
	if doc.edited {
		parts = append(parts, "edited")
	}
	return parts
}

func (m *model) drawNotice(f *frame) {
	if m.dialog == nil && m.notice.text == "" && len(m.queue.Troubles) > 0 && len(m.queue.Diffs) > 0 && m.companion != nil {
		f.add(" " + paint(m.theme.bad(), plain(m.queue.Troubles[0].What, max(0, f.w-2)))) // drawEmpty has more room
		return
	}
	text := plain(m.notice.text, max(0, f.w-2))
	if m.dialog != nil {
		f.add(paint(m.theme.button(), " "+plain(m.dialog.question(), f.w-2)))
		return
	}
	if m.notice.bad {
		f.add(" " + paint(m.theme.bad(), text))
		return
	}
	f.add(" " + text)
}

// A button is a key and what it does.
type button struct{ key, does string }

func (m *model) keysShown() []button {
	switch {
	case m.dialog != nil:
		return m.dialog.buttons(m)
	case m.past != nil:
		return []button{{"u", "undo this change"}, {"↑↓", "another"}, {"n", "next hunk"}, {"esc", "back"}, {"?", "help"}}
	case m.companion == nil:
		return []button{{"?", "help"}, {"q", "quit"}}
	case len(m.queue.Diffs) == 0:
		return []button{{"p", m.pauses()}, {"A", "policy"}, {"h", "history"}, {"?", "help"}, {"q", "quit"}}
	}
	d := m.diff()
	edits := []button{{"x", "hunk"}, {"e", "edit"}}
	if d != nil && d.ReadOnly != "" {
		edits = nil
	}
	if d != nil && d.Conflict != nil {
		return slices.Concat([]button{{"a", "keep or take"}, {"r", "reject"}}, edits, []button{{"?", "help"}, {"q", "quit"}})
	}
	decides := slices.Concat([]button{{"a", "accept"}, {"r", "reject"}}, edits)
	if len(m.queue.Diffs) > 1 { // buttons that do not fit are dropped from the end
		return append(decides, []button{{"tab", "next"}, {"A", "policy"}, {"?", "help"}, {"q", "quit"}, {"h", "history"}, {"p", m.pauses()}}...)
	}
	return append(decides, []button{{"A", "policy"}, {"h", "history"}, {"?", "help"}, {"q", "quit"}, {"p", m.pauses()}}...)
}

// pauses says what p does.
func (m *model) pauses() string {
	if m.paused() {
		return "resume sharing"
	}
	return "pause sharing"
}

// pressed returns the key that a click on a button presses.
func pressed(key string) string {
	switch key {
	case "↓":
		return "down"
	case "↑":
		return "up"
	}
	return key
}

// drawKeys draws the keys that matter now as buttons.
func (m *model) drawKeys(f *frame, keys []button) {
	var b strings.Builder
	at := 0
	for _, k := range keys {
		w := 1 + ansi.StringWidth(k.key) + 1 + ansi.StringWidth(k.does) + 1
		if at+w > f.w {
			break
		}
		f.zone(zone{from: at, to: at + w, key: pressed(k.key)})
		b.WriteString(" " + paint(m.theme.button(), k.key) + " " + k.does + " ")
		at += w
	}
	f.add(b.String())
}
