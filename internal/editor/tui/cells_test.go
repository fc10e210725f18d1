package tui

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Characters that a terminal would obey, reorder or hide are shown (hostile names and contents).
func TestHarmless(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{"a\tb\tc", "a   b   c"},
		{"\x1b[31mred\x1b]0;title\x07", "␛[31mred␛]0;title␇"},
		{"\x00\x08\x7f\r", "␀␈␡␍"},
		{"\u009b31m", "‹9B›31m"},
		{"exe\u202egnp.txt", "exe‹202E›gnp.txt"},
		{"a\u2066b\u2069", "a‹2066›b‹2069›"},
		{"zero\u200bwidth\ufeff", "zero‹200B›width‹FEFF›"},
		{"soft\u00adhyphen", "soft‹AD›hyphen"},
		{"no\u00a0break", "no‹A0›break"},
		{"line\u2028sep", "line‹2028›sep"},
		{"\U000e0041tag", "‹E0041›tag"},
		{"e\u0301", "e\u0301"},
		{"\u0301alone", "◌\u0301alone"},
		{"z" + strings.Repeat("\u0300", 50), "z" + strings.Repeat("\u0300", 4) + "‹…›"},
		{"世界", "世界"},
		{"👩\u200d👧", "👩👧"},
		{"a\u200db", "a‹200D›b"},
		{"⚠\ufe0f", "⚠"},
		{"👍\U0001f3fd", "👍‹1F3FD›"},
		{"bad\xffbyte", "bad‹FF›byte"},
		{"ᄀ\u1160", "ᄀ‹1160›"},
	} {
		if got := plain(tt.in, 1000); got != tt.want {
			t.Errorf("%q is shown as %q, want %q", tt.in, got, tt.want)
		}
	}
}

// A part of a long line, with half of a wide character at the edge.
func TestLayOut(t *testing.T) {
	for _, tt := range []struct {
		text        string
		skip, width int
		want        string
		left, right bool
	}{
		{"abcdef", 0, 10, "abcdef", false, false},
		{"abcdef", 2, 3, "cde", true, true},
		{"世界人", 1, 3, " 界", true, true},
		{"世界人", 0, 3, "世", false, true},
		{"\tx", 2, 10, "  x", true, false},
		{"ab", 5, 10, "", true, false},
		{"ab", 0, 0, "", false, false},
	} {
		l := layOut(tt.text, tt.skip, tt.width)
		var b strings.Builder
		for _, c := range l.cells {
			b.WriteString(c.text)
		}
		if b.String() != tt.want || l.left != tt.left || l.right != tt.right {
			t.Errorf("%q from %d, %d wide: %q %v %v", tt.text, tt.skip, tt.width, &b, l.left, l.right)
		}
	}
	if got := plain("abcdef", 4); got != "abc…" {
		t.Errorf("cut to %q", got)
	}
}

func FuzzCells(f *testing.F) {
	for _, s := range []string{"\x1b[2J", "世\u202e\u0301", "\xff\xfe", "👩\u200d👧", "a\u200b"} {
		f.Add(s, 0, 10)
	}
	f.Fuzz(func(t *testing.T, s string, skip, width int) {
		if skip < 0 || width < 0 || skip > 1000 || width > 1000 {
			return
		}
		s = strings.NewReplacer("\n", "").Replace(s)
		l := layOut(s, skip, width)
		sum, at := 0, -1
		for _, c := range l.cells {
			sum += c.width
			if c.at < at || c.at >= len(s) {
				t.Fatalf("%q: cell at %d after %d", s, c.at, at)
			}
			at = c.at
			for _, r := range c.text {
				if unicode.IsControl(r) || r != 0x200d && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
					t.Fatalf("%q: %q gets through", s, r)
				}
			}
			if w := ansi.StringWidth(c.text); w != c.width {
				t.Fatalf("%q: %q is %d columns wide, not %d", s, c.text, w, c.width)
			}
		}
		if sum != l.width || sum > width {
			t.Fatalf("%q: %d columns of %d", s, sum, width)
		}
	})
}

// The state at the end of one line continues in the next.
func TestLex(t *testing.T) {
	show := func(path, text string) string {
		x := lexed{lang: languageOf(path), text: splitText(text)}
		var b strings.Builder
		for i, l := range x.text {
			at := 0
			for _, tk := range x.tokens(i) {
				b.WriteString(l[at:tk.from] + string("_CSNK"[tk.class]) + "(" + l[tk.from:tk.to] + ")")
				at = tk.to
			}
			b.WriteString(l[at:] + "\n")
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	for _, tt := range []struct{ path, text, want string }{
		{"a.go", `var x = "a\"b" // c`, `K(var) x = S("a\"b") C(// c)`},
		{"a.go", "x /* a\nb */ 12\n`raw\nend` func", "x C(/* a)\nC(b */) N(12)\nS(`raw)\nS(end`) K(func)"},
		{"a.py", "def f():\n  '''doc\n  ''' # c\n1.5", "K(def) f():\n  S('''doc)\nS(  ''') C(# c)\nN(1.5)"},
		{"a.sh", `echo "$#" # c`, `K(echo) S("$#") C(# c)`},
		{"a.sh", `echo a#b`, `K(echo) a#b`},
		{"A.SQL", "SELECT 1 -- c", "K(SELECT) N(1) C(-- c)"},
		{"Makefile", "# all", "C(# all)"},
		{"a.html", "<!-- a\n--> b", "C(<!-- a)\nC(-->) b"},
		{"a.unknown", `func "x"`, `func "x"`},
	} {
		if got := show(tt.path, tt.text); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.path, got, tt.want)
		}
	}
}

func FuzzLex(f *testing.F) {
	f.Add("a.go", "x /* \"", 0)
	f.Add("a.py", "'''", -1)
	f.Fuzz(func(t *testing.T, path, s string, n int) {
		l := languageOf(path)
		if l == nil || n > len(l.block) || -n > len(l.long) {
			return
		}
		tokens, next := l.lex(s, lexState(n))
		at := 0
		for _, tk := range tokens {
			if tk.from < at || tk.to < tk.from || tk.to > len(s) {
				t.Fatalf("%q: %v", s, tokens)
			}
			at = tk.to
		}
		if int(next) > len(l.block) || -int(next) > len(l.long) {
			t.Fatalf("state %d", next)
		}
	})
}

// A change far to the right scrolls into view; the next hunk is shown from the left again.
func TestAside(t *testing.T) {
	for _, side := range []int{80, 160} {
		b := newBench(t, side, 24)
		long := strings.Repeat("世 ", 400)
		b.propose("1", "/w/proj/a.txt", long+"before end\nsame\nsame\nx old\n", long+"after end\nsame\nsame\nx new\n")
		b.sync()
		b.wants("after end")
		b.press("n")
		b.wants("x new")
		b.press("N")
		b.wants("after end")
		b.press("0")
		b.wants("世 世")
	}
}
