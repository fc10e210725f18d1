package tui

import (
	"image/color"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// A tone is the role of a row.
type tone int

const (
	toneSame tone = iota
	toneRemoved
	toneAdded
	toneReverted // a line of the proposal that the user has left out
	toneDim
)

// A look is everything that decides how a character is drawn.
type look struct {
	tone  tone
	class class
	word  bool // changed within its line
	mark  bool // stands for an invisible character
}

// A theme turns looks into terminal codes. Without colours it uses bold, faint, underline and reverse.
type theme struct {
	colours bool
	dark    bool
	few     bool // the terminal has 256 colours or fewer
}

func newTheme(dark, noColour bool) theme { return theme{colours: !noColour, dark: dark} }

// A hue is a colour for dark and for light backgrounds, in 24 bits and out of 256. The latter are chosen by hand: the
// nearest ones to the former make added and removed lines alike.
type hue struct{ dark, light, dark256, light256 string }

var (
	hueRemoved     = hue{"#3c1618", "#ffebe9", "52", "224"}
	hueRemovedWord = hue{"#8b2a2f", "#ffb3ad", "88", "217"}
	hueAdded       = hue{"#0f3320", "#dafbe1", "22", "194"}
	hueAddedWord   = hue{"#1d6b3c", "#94e0a5", "28", "157"}
	huePlain       = hue{"#e6edf3", "#1f2328", "231", "235"}
	hueComment     = hue{"#8b949e", "#57606a", "251", "239"}
	hueLiteral     = hue{"#a5d6ff", "#0a3069", "153", "17"}
	hueNumber      = hue{"#79c0ff", "#0550ae", "159", "18"}
	hueKeyword     = hue{"#ff9e94", "#a40e26", "223", "88"}
	hueBad         = hue{"#ff7b72", "#cf222e", "210", "160"}
)

// startsDark guesses whether the background is dark, before the terminal has answered; some terminals never answer.
func startsDark(o Options) bool {
	if o.Theme != "" {
		return o.Theme != "light"
	}
	for _, v := range o.Env {
		if colours, ok := strings.CutPrefix(v, "COLORFGBG="); ok { // foreground;background, of 16 colours
			background := colours[strings.LastIndex(colours, ";")+1:]
			n, err := strconv.Atoi(background)
			return err != nil || n != 7 && (n < 9 || n > 15)
		}
	}
	return true
}

// pick returns the colour for the terminal.
func (t theme) pick(h hue) color.Color {
	if t.few {
		h.dark, h.light = h.dark256, h.light256
	}
	return lipgloss.LightDark(t.dark)(lipgloss.Color(h.light), lipgloss.Color(h.dark))
}

// style returns the terminal codes for a look.
func (t theme) style(l look) ansi.Style {
	var s ansi.Style
	switch {
	case l.mark:
		return s.Reverse(true)
	case !t.colours:
		return t.colourless(l)
	}
	switch l.tone {
	case toneRemoved:
		s = s.BackgroundColor(t.pick(hueRemoved))
		if l.word {
			s = s.BackgroundColor(t.pick(hueRemovedWord)).Bold()
		}
	case toneAdded:
		s = s.BackgroundColor(t.pick(hueAdded))
		if l.word {
			s = s.BackgroundColor(t.pick(hueAddedWord)).Bold()
		}
	case toneReverted:
		return s.Faint().Strikethrough(true)
	case toneDim:
		return s.Faint()
	}
	if l.tone == toneRemoved || l.tone == toneAdded { // readable with any terminal colours
		s = s.ForegroundColor(t.pick(huePlain))
	}
	if l.word { // no language's colour can be read on its ground
		return s
	}
	switch l.class {
	case comment:
		s = s.ForegroundColor(t.pick(hueComment))
	case literal:
		s = s.ForegroundColor(t.pick(hueLiteral))
	case number:
		s = s.ForegroundColor(t.pick(hueNumber))
	case keyword:
		s = s.ForegroundColor(t.pick(hueKeyword))
	}
	return s
}

func (t theme) colourless(l look) ansi.Style {
	var s ansi.Style
	if l.word {
		s = s.Underline(true)
	}
	switch l.tone {
	case toneRemoved, toneAdded:
		s = s.Bold()
	case toneReverted, toneDim:
		s = s.Faint()
	}
	return s
}

// bar is the style of the first line.
func (t theme) bar() ansi.Style { return ansi.Style{}.Reverse(true) }

// button is the style of a key in the last line.
func (t theme) button() ansi.Style { return ansi.Style{}.Bold() }

// bad is the style of an error message.
func (t theme) bad() ansi.Style {
	if !t.colours {
		return ansi.Style{}.Bold()
	}
	return ansi.Style{}.Bold().ForegroundColor(t.pick(hueBad))
}

// paint returns text in a style, or unchanged when the style is empty.
func paint(s ansi.Style, text string) string {
	if len(s) == 0 || text == "" {
		return text
	}
	return s.String() + text + ansi.ResetStyle
}
