package tui

import (
	"strings"
	"testing"
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

// Every look with a background colour has a foreground colour.
func TestColouredLinesNameBothColours(t *testing.T) {
	for _, dark := range []bool{true, false} {
		for _, l := range []look{{tone: toneAdded}, {tone: toneRemoved}, {tone: toneAdded, word: true}, {tone: toneRemoved, class: keyword}} {
			if code := newTheme(dark, false).style(l).String(); !strings.Contains(code, "38;2;") || !strings.Contains(code, "48;2;") {
				t.Errorf("%+v: %q", l, code)
			}
		}
	}
}
