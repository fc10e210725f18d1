package text

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestShapeOf(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Shape
	}{
		{"", Shape{EOL: "\n"}},
		{"a", Shape{EOL: "\n"}},
		{"a\n", Shape{EOL: "\n", FinalNewline: true}},
		{"a\r\nb", Shape{EOL: "\r\n"}},
		{"a\r\nb\r\n", Shape{EOL: "\r\n", FinalNewline: true}},
		{"a\rb\r", Shape{EOL: "\r", FinalNewline: true}},
		{"a\r\nb\nc\r\n", Shape{EOL: "\r\n", Mixed: true, FinalNewline: true}},
		{"a\nb\r\n", Shape{EOL: "\n", Mixed: true, FinalNewline: true}},   // a tie: the first
		{"a\r\nb\n", Shape{EOL: "\r\n", Mixed: true, FinalNewline: true}}, // a tie: the first
		{"a\rb\nc\r", Shape{EOL: "\r", Mixed: true, FinalNewline: true}},
		{"\ufeffa\r\n", Shape{EOL: "\r\n", BOM: true, FinalNewline: true}},
		{"\ufeff", Shape{EOL: "\n", BOM: true}},
		{"a\ufeff", Shape{EOL: "\n"}},
		{"\n\r", Shape{EOL: "\n", Mixed: true, FinalNewline: true}},
	} {
		if got := ShapeOf(tt.in); got != tt.want {
			t.Errorf("ShapeOf(%q) = %+v, want %+v", tt.in, got, tt.want)
		}
	}
}

func TestToLF(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "a\nb": "a\nb", "a\r\nb\rc\n": "a\nb\nc\n", "\r\r\n\n": "\n\n\n",
		"\ufeffa": "a", "\ufeff\ufeffa": "\ufeffa", "a\ufeff": "a\ufeff", "\xff\r": "\xff\n",
	} {
		if got := ToLF(in); got != want {
			t.Errorf("ToLF(%q) = %q, want %q", in, got, want)
		}
	}
}

// SPEC F-6: edited keeps the proposal's line ending and final-newline state
// unless the user changed them.
func TestFromLF(t *testing.T) {
	for _, tt := range []struct{ name, original, edited, want string }{
		{"LF", "a\nb\n", "a\nx\nb\n", "a\nx\nb\n"},
		{"CR LF", "a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"},
		{"CR", "a\rb\r", "x\n", "x\r"},
		{"one line has no ending yet", "a", "a\nb\n", "a\nb\n"},
		{"final newline taken away", "a\r\nb\r\n", "a\nb", "a\r\nb"},
		{"final newline added", "a\r\nb", "a\nb\n", "a\r\nb\r\n"},
		{"byte order mark", "\ufeffa\r\n", "b\n", "\ufeffb\r\n"},
		{"byte order mark of an emptied text", "\ufeffa", "", "\ufeff"},
		{"emptied", "a\r\nb\r\n", "", ""},
		{"was empty", "", "a\nb\n", "a\nb\n"},
		{"stray CR LF from an editor", "a\nb\n", "a\r\nc\r\n", "a\nc\n"},
		{"mixed: line inserted follows the one before", "a\r\nb\nc\r\n", "a\nb\nx\nc\n", "a\r\nb\nx\nc\r\n"},
		{"mixed: inserted first takes the commonest", "a\nb\r\nc\r\n", "x\na\nb\nc\n", "x\r\na\nb\r\nc\r\n"},
		{"mixed: changed line keeps its ending", "a\r\nb\nc\r\n", "a\nB\nc\n", "a\r\nB\nc\r\n"},
		{"mixed: line deleted", "a\r\nb\nc\r\nd\n", "a\nc\nd\n", "a\r\nc\r\nd\n"},
		{"mixed: two places", "a\r\nb\nc\rd\ne\r\n", "A\nb\nc\nnew\nd\nE\n", "A\r\nb\nc\rnew\rd\nE\r\n"},
		{"mixed: last line gets an ending", "a\r\nb\nc", "a\nb\nc\n", "a\r\nb\nc\n"},
		{"mixed: last line loses it", "a\r\nb\n", "a\nb", "a\r\nb"},
		{"mixed: all deleted", "a\r\nb\n", "", ""},
		{"mixed with a mark", "\ufeffa\r\nb\n", "a\nb\nc\n", "\ufeffa\r\nb\nc\n"},
		{"mixed: a blank line between CR and LF stays one", "\rx\ny", "\n\n", "\r\r"},
		{"mixed: blank lines", "\r\n\n\r\n", "\n\n\n\n", "\r\n\n\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := FromLF(tt.original, tt.edited); got != tt.want {
				t.Errorf("FromLF(%q, %q)\n got %q\nwant %q", tt.original, tt.edited, got, tt.want)
			}
		})
	}
}

func FuzzFromLF(f *testing.F) {
	f.Add("\ufeffa\r\nb\nc\rd", "a\nx\nd\n")
	f.Add("a\nb\r\n", "")
	f.Add("\r\r\n\n\ufeff", "\ufeff\r")
	f.Fuzz(func(t *testing.T, s, edited string) {
		lf := ToLF(s)
		if got := FromLF(s, lf); got != s {
			t.Errorf("FromLF(%q, %q) = %q", s, lf, got)
		}
		// Also without the shortcut for unedited text.
		body := strings.TrimPrefix(s, bom)
		if got := restoreEndings(body, lf, ShapeOf(s).EOL); got != body {
			t.Errorf("restoreEndings(%q, %q) = %q", body, lf, got)
		}
		// Nothing but line endings and the mark is ever added to an edit.
		got := FromLF(s, edited)
		if ShapeOf(s).BOM {
			got = strings.TrimPrefix(got, bom)
		}
		if endingsToLF(got) != endingsToLF(edited) && ToLF(s) != edited {
			t.Errorf("FromLF(%q, %q) changed the text to %q", s, edited, got)
		}
	})
}

// A line that original had too keeps its ending, in files of the size that is
// allowed and with changes that make line diffs expensive.
func TestFromLFMixedLarge(t *testing.T) {
	var original strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&original, "line %d of a file with mixed endings, all differ%s", i, []string{"\n", "\r\n", "\r\n"}[i%3])
	}
	lines := strings.Split(ToLF(original.String()), "\n")
	lines[10] = "changed"
	lines = slices.Insert(lines, 50_000, "inserted")
	lines = slices.Delete(lines, 90_000, 90_007)
	got, endings := splitLines(FromLF(original.String(), strings.Join(lines, "\n")))
	if !slices.Equal(got, lines) {
		t.Fatal("the text changed")
	}
	_, before := splitLines(original.String())
	for _, at := range []struct{ after, before int }{{0, 0}, {10, 10}, {49_999, 49_999}, {50_001, 50_000}, {89_999, 89_998}, {90_000, 90_006}, {99_992, 99_998}} {
		if endings[at.after] != before[at.before] {
			t.Errorf("line %d: ending %q, in the original %q", at.after, endings[at.after], before[at.before])
		}
	}
}

func BenchmarkFromLF(b *testing.B) {
	lf := strings.Repeat("fifty bytes of source code, as many files hold it\n", 100_000)
	edited := lf[:1000] + "edited" + lf[1000:2_000_000] + "\n\n" + lf[2_000_000:]
	every := strings.ReplaceAll(lf, "source", "no")
	crlf := strings.ReplaceAll(lf, "\n", "\r\n")
	for _, bb := range []struct{ name, original, edited string }{
		{"unedited LF", lf, lf},
		{"unedited CRLF", crlf, lf},
		{"edited CRLF", crlf, edited},
		{"edited mixed", crlf + "x\n", edited},
		{"every line changed in mixed", crlf + "x\n", every},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.original)))
			for b.Loop() {
				FromLF(bb.original, bb.edited)
			}
		})
	}
}
