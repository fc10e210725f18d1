package tty

import (
	"strings"
	"testing"
)

func modesOf(output string) *modes {
	m := &modes{}
	for i := range len(output) { // byte by byte: sequences may arrive in pieces
		_, _ = m.Write([]byte{output[i]})
	}
	return m
}

func TestModes(t *testing.T) {
	for _, tt := range []struct{ output, restore, clear string }{
		{"plain text", "", ""},
		{"\x1b[?2004h\x1b[?25l", "\x1b[?25l\x1b[?2004h", "\x1b[?25h\x1b[?2004l"},
		{"\x1b[?2004h\x1b[?2004l", "\x1b[?2004l", "\x1b[?2004l"},
		{"\x1b[?1000;1006h", "\x1b[?1000h\x1b[?1006h", "\x1b[?1000l\x1b[?1006l"},
		{"\x1b[?25l\x1b[?1049h", "\x1b[?1049h\x1b[?25l", "\x1b[?25h"},
		{"\x1b[?7h\x1b[31m\x1b[2J", "", ""},                // these modes are not tracked
		{"\x1b]0;\x1b[?25l\x07", "\x1b[?25l", "\x1b[?25h"}, // ESC ends a title
		{"\x1b]0;[?25l\x07", "", ""},
		{"\x1bP1$r\x1b\\\x1b[?1h", "\x1b[?1h", "\x1b[?1l"},
		{"\x1b[?25l\x1bc", "", ""},
		{"\x1b[?" + strings.Repeat("1;", 100) + "25l", "", ""}, // longer than any real sequence
		{"\x1b[?25;:;1002l", "\x1b[?25l\x1b[?1002l", "\x1b[?25h\x1b[?1002l"},
	} {
		m := modesOf(tt.output)
		if got := m.restore(); got != tt.restore {
			t.Errorf("%q: restored by %q, want %q", tt.output, got, tt.restore)
		}
		if got := m.clear(); got != tt.clear {
			t.Errorf("%q: cleared by %q, want %q", tt.output, got, tt.clear)
		}
	}
}

func TestQuiet(t *testing.T) {
	for output, want := range map[string]bool{
		"text": true, "\x1b": false, "\x1b[3": false, "\x1b[31m": true, "\x1b]0;ti": false, "\x1b]0;title\x1b\\": true,
		"\x1b[?2026h": false, "\x1b[?2026hx\x1b[?2026l": true, "\x1b(B": true, "\x1b(": false, "\x1b[\x18": true,
	} {
		if got := modesOf(output).quiet(); got != want {
			t.Errorf("after %q: %v", output, got)
		}
	}
	if m := modesOf("\x1b[?1049h"); !m.alternate() {
		t.Error("the alternate screen is not noticed")
	}
}

func FuzzModes(f *testing.F) {
	f.Add("\x1b[?25l\x1b]0;t\x07")
	f.Fuzz(func(t *testing.T, output string) {
		m := modesOf(output)
		again := modesOf(m.restore())
		if !again.quiet() || again.restore() != m.restore() {
			t.Errorf("%q restores %q, and that %q", output, m.restore(), again.restore())
		}
	})
}
