package extensions

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// Lines fit the terminal and columns are aligned, whatever the text.
func TestColumns(t *testing.T) {
	rows := [][]string{
		{"a", "1.0.0", "enabled", "A description that is longer than any terminal is wide, and then goes on."},
		{"mit-umlaut", "1.0.0-beta.1", "disabled", "説明はとても長いので端末の幅に収まりません。だから切らなければなりません。本当に長い。"},
		{"e", "–", "broken", "👩‍👩‍👧 family, žluťoučký kůň"},
		{"none", "2", "enabled, needs consent", ""},
	}
	for _, width := range []int{0, 40, 60, 80, 100, 200, 10} {
		for i, line := range columns(rows, width) {
			if width > 0 && ansi.StringWidth(line) > width {
				t.Errorf("%d columns: %q takes %d", width, line, ansi.StringWidth(line))
			}
			if width != 10 && !strings.HasPrefix(line, rows[i][0]+" ") {
				t.Errorf("%d columns: %q", width, line)
			}
			if at := strings.Index(line, rows[i][2]); width >= 60 && ansi.StringWidth(line[:at]) != 26 {
				t.Errorf("%d columns: the state of %q stands at %d", width, line, ansi.StringWidth(line[:at]))
			}
		}
	}
	if got := columns(rows, 0)[1]; ansi.StringWidth(got) > 26+24+maxDescription || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}
