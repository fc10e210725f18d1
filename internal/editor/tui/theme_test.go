package tui

import (
	"image/color"
	"math"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// When the terminal does not report its background: --theme, else COLORFGBG, else dark.
func TestBackgroundOfSilentTerminals(t *testing.T) {
	for _, tt := range []struct {
		theme, colours string
		dark           bool
	}{
		{"", "", true}, {"", "15;0", true}, {"", "0;15", false}, {"", "0;default;15", false}, {"", "0;7", false}, {"", "7;8", true},
		{"", "12;8", true}, {"", "0;11", false}, {"", "junk", true}, {"", ";", true}, {"", "0;99", true},
		{"light", "15;0", false}, {"dark", "0;15", true}, {"light", "", false},
	} {
		o := Options{Theme: tt.theme}
		if tt.colours != "" {
			o.Env = []string{"A=b", "COLORFGBG=" + tt.colours}
		}
		if got := newModel(o).theme.dark; got != tt.dark {
			t.Errorf("--theme %q, COLORFGBG %q: dark %v", tt.theme, tt.colours, got)
		}
		if cmd := (program{newModel(o)}).Init(); (cmd == nil) != (tt.theme != "") {
			t.Errorf("--theme %q: the terminal is asked %v", tt.theme, cmd != nil)
		}
	}
}

// Every coloured look sets both colours, on 24-bit terminals and on those with 256 colours. Of the 256 it takes those
// that no terminal's configuration changes. The colours can be told apart: letters from their ground, added from removed
// lines, changed words from their line.
func TestColouredLinesCanBeRead(t *testing.T) {
	for _, dark := range []bool{true, false} {
		for _, profile := range []tea.ColorProfileMsg{{Profile: 5}, {Profile: 4}} {
			m := newModel(Options{})
			m.update(profile)
			m.theme.dark = !dark
			m.update(tea.BackgroundColorMsg{Color: map[bool]color.Color{true: color.Black, false: color.White}[dark]}) // in either order
			both := map[string]string{"TrueColor": "38;2; 48;2;", "ANSI256": "38;5; 48;5;"}[profile.String()]
			if m.theme.few != (profile.String() == "ANSI256") || m.theme.dark != dark || both == "" {
				t.Fatalf("%v, dark %v: %+v", profile, dark, m.theme)
			}
			for _, tone := range []tone{toneAdded, toneRemoved} {
				for class := range keyword + 1 {
					for _, word := range []bool{false, true} {
						l := look{tone: tone, class: class, word: word}
						code := m.theme.style(l).String()
						if plain := m.theme.style(look{tone: tone, word: word}).String(); word && code != plain {
							t.Errorf("%v, dark %v, %+v: %q, not %q", profile, dark, l, code, plain)
						}
						for _, part := range strings.Fields(both) {
							if !strings.Contains(code, part) {
								t.Errorf("%v, dark %v, %+v: %q", profile, dark, l, code)
							}
						}
					}
				}
			}
			for ground, letters := range map[hue][]hue{
				hueRemoved: {huePlain, hueComment, hueLiteral, hueNumber, hueKeyword}, hueRemovedWord: {huePlain},
				hueAdded: {huePlain, hueComment, hueLiteral, hueNumber, hueKeyword}, hueAddedWord: {huePlain},
			} {
				for _, letters := range letters {
					if c := contrast(m.theme.pick(letters), m.theme.pick(ground)); c < 4.5 {
						t.Errorf("%v, dark %v: contrast %.1f of %v on %v", profile, dark, c, letters, ground)
					}
				}
			}
			for _, pair := range [][2]hue{{hueRemoved, hueAdded}, {hueRemovedWord, hueAddedWord}, {hueRemoved, hueRemovedWord}, {hueAdded, hueAddedWord}} {
				if m.theme.pick(pair[0]) == m.theme.pick(pair[1]) {
					t.Errorf("%v, dark %v: %v is %v", profile, dark, pair[0], pair[1])
				}
			}
		}
	}
	for _, h := range []hue{hueRemoved, hueRemovedWord, hueAdded, hueAddedWord, huePlain, hueComment, hueLiteral, hueNumber, hueKeyword, hueBad} {
		for _, index := range []string{h.dark256, h.light256} {
			if n, err := strconv.Atoi(index); err != nil || n < 16 || n > 255 { // the first 16 are the user's to choose
				t.Errorf("%v has the index %q", h, index)
			}
		}
	}
}

// contrast is WCAG's contrast of two colours, 1 to 21.
func contrast(a, b color.Color) float64 {
	luminance := func(c color.Color) float64 {
		linear := func(v uint32) float64 {
			if s := float64(v) / 0xffff; s > 0.04045 {
				return math.Pow((s+0.055)/1.055, 2.4)
			} else {
				return s / 12.92
			}
		}
		r, g, b, _ := c.RGBA()
		return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b) + 0.05
	}
	x, y := luminance(a), luminance(b)
	return max(x, y) / min(x, y)
}
