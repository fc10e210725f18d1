package tui

import (
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/pollux-companion/pollux/internal/core/review"
)

// A dialog takes the keys until it is closed.
type dialog interface {
	key(m *model, key, text string) tea.Cmd
	paste(m *model, text string) tea.Cmd
	// about is the diff of the question, "" for none.
	about() string
	// whole reports whether it takes the whole screen; otherwise it is a question above the keys.
	whole() bool
	draw(m *model, f *frame)
	question() string
	buttons(m *model) []button
}

// A confirm is a yes-or-no question.
type confirm struct {
	id   string
	text string
	yes  func(m *model) tea.Cmd
}

func (c *confirm) key(m *model, key, _ string) tea.Cmd {
	switch key {
	case "y", "Y":
		m.dialog = nil
		return c.yes(m)
	case "n", "N", "esc", "q", "ctrl+c":
		m.dialog = nil
	}
	return nil
}
func (c *confirm) paste(*model, string) tea.Cmd { return nil }
func (c *confirm) about() string                { return c.id }
func (c *confirm) whole() bool                  { return false }
func (c *confirm) draw(*model, *frame)          {}
func (c *confirm) question() string             { return c.text }
func (c *confirm) buttons(*model) []button      { return []button{{"y", "yes"}, {"n", "no"}} }

// A scope is one choice of the policy: the proposals that a rule covers.
type scope struct {
	label string
	rule  review.Rule // without mode
	edit  bool        // the user can edit its pattern
	clear bool        // it clears a rule in force
}

// A policy makes rules (SPEC F-11).
type policy struct {
	id      string
	accept  bool // otherwise leave to the terminal
	scopes  []scope
	at      int
	editing bool
	pattern string
}

// newPolicy offers the rules that fit the current proposal, and lists the rules in force.
func (m *model) newPolicy() *policy {
	p := &policy{accept: true}
	if d := m.diff(); d != nil {
		p.id = d.ID
		dir := review.FilePattern(filepath.ToSlash(filepath.Dir(d.Path)))
		p.pattern = dir + "/**"
		if ext := filepath.Ext(d.Path); ext != "" {
			p.pattern = dir + "/**/*" + review.FilePattern(ext)
		}
		p.scopes = append(p.scopes,
			scope{label: "from " + d.Owner, rule: review.Rule{Owner: d.Owner}},
			scope{label: "of the file " + m.name(d.Path), rule: review.Rule{Pattern: review.FilePattern(d.Path)}},
			scope{edit: true},
		)
	}
	p.scopes = append(p.scopes, scope{label: "of everybody and every file"})
	for _, r := range m.queue.Rules {
		p.scopes = append(p.scopes, scope{label: describeRule(r), rule: review.Rule{Mode: review.Ask, Owner: r.Owner, Pattern: r.Pattern}, clear: true})
	}
	return p
}

func describeRule(r review.Rule) string {
	what := "accept"
	if r.Mode == review.Terminal {
		what = "leave to the terminal"
	}
	if r.Mode == review.Ask {
		what = "ask about"
	}
	whose, which := "of everybody", "every file"
	if r.Owner != "" {
		whose = "of " + r.Owner
	}
	if r.Pattern != "" {
		which = r.Pattern
	}
	return what + " " + which + " " + whose
}

func (p *policy) key(m *model, key, text string) tea.Cmd {
	if p.editing {
		return p.typed(key, text)
	}
	switch key {
	case "esc", "q", "A", "ctrl+c":
		m.dialog = nil
	case "up", "k":
		p.at = max(0, p.at-1)
	case "down", "j":
		p.at = min(len(p.scopes)-1, p.at+1)
	case "tab", "left", "right":
		p.accept = !p.accept
	case "e":
		p.editing = p.scopes[p.at].edit
	case "enter":
		return p.make(m)
	}
	return nil
}

// typed edits the pattern.
func (p *policy) typed(key, text string) tea.Cmd {
	switch key {
	case "enter", "esc":
		p.editing = false
	case "backspace":
		if r := []rune(p.pattern); len(r) > 0 {
			p.pattern = string(r[:len(r)-1])
		}
	case "ctrl+u":
		p.pattern = ""
	default:
		p.pattern += text
	}
	return nil
}

func (p *policy) paste(_ *model, text string) tea.Cmd {
	if p.editing {
		p.pattern += strings.TrimSpace(text)
	}
	return nil
}

// make sets the chosen rule.
func (p *policy) make(m *model) tea.Cmd {
	s := p.scopes[p.at]
	r := s.rule
	if s.edit {
		r.Pattern = p.pattern
		if r.Pattern == "" {
			m.complain("a pattern is needed; e edits it")
			return nil
		}
	}
	m.dialog = nil
	switch {
	case s.clear:
		return m.setRule(r, "the rule is gone; you are asked again")
	case p.accept:
		r.Mode = review.AcceptAll
	default:
		r.Mode = review.Terminal
	}
	return m.setRule(r, "from now on: "+describeRule(r))
}

func (p *policy) about() string    { return p.id }
func (p *policy) whole() bool      { return true }
func (p *policy) question() string { return "" }
func (p *policy) buttons(*model) []button {
	if p.editing {
		return []button{{"enter", "done"}, {"ctrl+u", "empty it"}}
	}
	return []button{{"enter", "take"}, {"↑↓", "choose"}, {"tab", "accept or terminal"}, {"e", "edit pattern"}, {"esc", "back"}}
}

func (p *policy) draw(m *model, f *frame) {
	mode := "[accept without asking]   leave to the CLI's terminal "
	if !p.accept {
		mode = " accept without asking   [leave to the CLI's terminal]"
	}
	lines := []string{"Policy: what happens to proposals from now on", "", mode, ""}
	inForce := false
	for i, s := range p.scopes {
		if s.clear && !inForce {
			inForce = true
			lines = append(lines, "", "In force (enter removes one):")
		}
		label := s.label
		if s.edit {
			label = "of files that match " + p.pattern
			if p.editing {
				label += "_"
			}
		}
		mark := "  "
		if i == p.at {
			mark = "▸ "
		}
		lines = append(lines, mark+plain(label, max(10, f.w-8)))
	}
	lines = append(lines, "", "Proposals that wait now and were not edited are accepted at once", "if a rule says so. Rules end with the companion.")
	box(f, lines)
}

// box draws lines in a frame, as many as fit.
func box(f *frame, lines []string) {
	lines = lines[:min(len(lines), max(0, f.h-4))]
	width := max(4, min(f.w, 78))
	drawn := lipgloss.NewStyle().Border(lipgloss.RoundedBorder()).Width(width).Padding(0, 1).Render(strings.Join(lines, "\n"))
	for l := range strings.SplitSeq(drawn, "\n") {
		f.add(l)
	}
}

// A help lists the keys.
type help struct{ top int }

func (h *help) key(m *model, key, _ string) tea.Cmd {
	switch key {
	case "down", "j", "pgdown", "space":
		h.top = min(h.top+1, h.last(m))
	case "up", "k", "pgup":
		h.top = max(0, h.top-1)
	default:
		m.dialog = nil
	}
	return nil
}
func (h *help) paste(*model, string) tea.Cmd { return nil }
func (h *help) about() string                { return "" }
func (h *help) whole() bool                  { return true }
func (h *help) question() string             { return "" }
func (h *help) buttons(m *model) []button {
	keys := []button{{"esc", "back"}}
	if h.top < h.last(m) {
		keys = append(keys, button{"↓", "more"})
	}
	if h.top > 0 {
		keys = append(keys, button{"↑", "before"})
	}
	return keys
}

// last returns the largest line number that can be at the top.
func (h *help) last(m *model) int { return max(0, len(helpLines())-max(0, m.h-4)) }

func (h *help) draw(_ *model, f *frame) {
	lines := helpLines()
	box(f, lines[min(h.top, len(lines)):])
}

func helpLines() []string {
	return []string{
		"a           accept what is shown, edits and reverted hunks included",
		"r           reject the whole proposal",
		"x           take the current hunk out, or back in;  X all of them",
		"e           edit the proposal in $VISUAL or $EDITOR",
		"A           policy: accept without asking, or leave to the terminal",
		"!           changed on disk, too; a asks which of the two stands",
		"h           history of proposals; there u undoes an accepted one",
		"p           tell agents nothing of what you look at; again resumes",
		"",
		"n N         next and previous hunk (also ] [)",
		"tab S-tab   next and previous proposal (also 1 … 9)",
		"↑ ↓ j k     scroll;  PgUp PgDn space b  by pages;  g G  to the ends",
		"← →         to the side, in long lines;  0  back",
		"v           side by side, unified, or by the window's width",
		"f           fold unchanged lines, or show all",
		"q           leave; what waits goes on waiting, here and elsewhere",
		"- + before a line: it goes, it comes;  = ×: its hunk is reverted",
		"⌀ no line end at the end of the file;  ‹ › the line goes on",
		"␛ ‹202E› and the like stand for what a terminal would hide or obey",
		"The mouse scrolls, chooses proposals and hunks, and presses keys.",
	}
}
