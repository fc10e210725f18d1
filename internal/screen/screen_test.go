package screen

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// passed returns the output that reaches the terminal, and the number of dropped sequences. The result must not
// depend on how the output is split.
func passed(t *testing.T, output string) (string, int) {
	t.Helper()
	var whole, single bytes.Buffer
	f, _ := Pair(&whole, &whole)
	_, _ = f.Write([]byte(output))
	g, _ := Pair(&single, &single)
	for i := range len(output) {
		if n, err := g.Write([]byte{output[i]}); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	body := whole.String()
	if single.String() != body {
		t.Errorf("%q passes as %q in one, as %q in bytes", output, body, single.String())
	}
	left := f.Close()
	if again := g.Close(); again != left || single.String() != whole.String() {
		t.Errorf("%q: %d and %d left out; ends %q and %q", output, left, again, whole.String(), single.String())
	}
	return body, left
}

// No control sequence passes except for text, colours and cursor movement (SPEC S-1).
func TestAttacks(t *testing.T) {
	for name, output := range map[string]string{
		"clipboard":                   "a\x1b]52;c;cm0gLXJmIH4=\x07b",
		"clipboard, other end":        "a\x1b]52;c;cm0gLXJmIH4=\x1b\\b",
		"clipboard, end of one byte":  "a\u009d52;c;cm0gLXJmIH4=\u009cb",
		"clipboard is asked for":      "a\x1b]52;c;?\x07b",
		"title":                       "a\x1b]0;rm -rf ~\x07b",
		"title of tmux":               "a\x1bkrm\x1b\\b",
		"title is told":               "a\x1b[21tb",
		"window":                      "a\x1b[9;1tb",
		"link":                        "a\x1b]8;;http://evil.example/\x07\x1b]8;;\x07b",
		"notification":                "a\x1b]9;update now\x07\x1b]777;notify;a;b\x07\x1b]99;;x\x1b\\b",
		"palette":                     "a\x1b]4;0;#000000\x07\x1b]10;#000000\x07b",
		"colours are asked for":       "a\x1b]11;?\x07b",
		"iTerm writes a file":         "a\x1b]1337;File=name=eA==;inline=0:eA==\x07b",
		"kitty's files and pictures":  "a\x1b_Gf=100,t=f;L2V0Yy9wYXNzd2Q=\x1b\\b",
		"sixel":                       "a\x1bPq#0~~\x1b\\b",
		"through tmux":                "a\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\b",
		"private message":             "a\x1b^x\x1b\\\x1bXy\x1b\\b",
		"terminfo is asked for":       "a\x1bP+q544e\x1b\\b",
		"a setting is asked for":      "a\x1bP$qm\x1b\\b",
		"who are you":                 "a\x1b[c\x1b[>c\x1b[=c\x1b[0c\x1bZb",
		"where are you":               "a\x1b[6n\x1b[5n\x1b[?6nb",
		"which mode":                  "a\x1b[?2004$p\x1b[4$pb",
		"answerback":                  "a\x05b",
		"checksum of the screen":      "a\x1b[1;1;1;1;10;10*yb",
		"the mouse types":             "a\x1b[?1000h\x1b[?1003;1006hb",
		"the focus types":             "a\x1b[?1004hb",
		"pasting is not marked":       "a\x1b[?2004lb",
		"keys are told otherwise":     "a\x1b[>4;2m\x1b[>1u\x1b[=1ub",
		"the keyboard is locked":      "a\x1b[2hb",
		"enter types more":            "a\x1b[20hb",
		"keys get new words":          "a\x1bP0;1|17/0a\x1b\\b",
		"the printer":                 "a\x1b[5i\x1b[?5i\x1b[4ib",
		"what was printed is erased":  "a\x1b[3Jb",
		"everything is reset":         "a\x1bcb",
		"another character set":       "a\x1b%@b",
		"a set of one's own":          "a\x1b(~b",
		"132 columns":                 "a\x1b[?3hb",
		"single controls":             "a\u0085\u008d\u0084b",
		"in the middle of a sequence": "a\x1b[3\x051mb",
		"a sequence without end":      "ab\x1b]52;c;eA==",
		"half a sequence":             "ab\x1b[?1049",
		"a huge number":               "a\x1b[99999999Sb",
		"longer than any":             "a\x1b[" + strings.Repeat("1;", 400) + "mb",
		"begun anew":                  "a\x1b[\x1b[\x1b]0;x\x07b",
		"a lead of two":               "a\x1b[?25$h\x1b[?25;2004$lb",
		"rectangles":                  "a\x1b[65;1;1;9;9$xb",
		"a macro":                     "a\x1bP1;0;0!z414243\x1b\\\x1b[1*zb",
	} {
		got, left := passed(t, output)
		if strings.ContainsAny(got, "\x1b\x05\u009b\u009d") || left == 0 || got[0] != 'a' {
			t.Errorf("%s: %q passes as %q, %d left out", name, output, got, left)
		}
		if ends := strings.TrimSuffix(got, "b"); name != "in the middle of a sequence" && ends != "a" && ends != "a\u0085" && strings.Contains(ends, "b") {
			t.Errorf("%s: %q is left of %q", name, got, output)
		}
	}
}

// Honest programs: colours, movement, and what curses sends (terminfo of xterm-256color).
func TestHonest(t *testing.T) {
	for _, output := range []string{
		"plain text\n\ttabs\r\nand \a\b more\f\v", "žluťoučký kůň 漢字 👩‍👩‍👧 \u200fעברית", "",
		"\x1b[31mred\x1b[0m \x1b[1;38;5;196mmore\x1b[m \x1b[38;2;1;2;3mtrue\x1b[39;49m \x1b[4:3mcurly\x1b[0m",
		"10%\r20%\r\x1b[2K30%\x1b[1A\x1b[1B\x1b[2C\x1b[D\x1b[5G\x1b[3;4H\x1b[3;4f\x1b[J\x1b[1J\x1b[2J\x1b[K",
		"\x1b[?1049h\x1b[22m\x1b[1;24r\x1b(B\x1b[m\x1b[4l\x1b[?7h\x1b[?1h\x1b=\x1b[H\x1b[2J\x1b[24d\x1b[?1l\x1b>\x1b[?1049l",
		"\x1b[?25l\x1b[10X\x1b[5b\x1b[2@\x1b[2P\x1b[3L\x1b[3M\x1b[S\x1b[T\x1b7\x1b8\x1bM\x1bD\x1bE\x1bH\x1b[I\x1b[Z\x1b[0g\x1b[?12l\x1b[?25h",
		"\x1b(0lqqk\x1b(B \x0ex\x0f", "\x1b[2 q\x1b[ q", "\x1b[!p", "\x1b[?2026hframe\x1b[?2026l", "\x1b[s\x1b[u", "\x1b[?5h\x1b[?5l",
	} {
		if got, left := passed(t, output); got != output || left != 0 {
			t.Errorf("%q passes as %q, %d left out", output, got, left)
		}
	}
	for output, want := range map[string]string{
		"\u009b31mred":                  "\x1b[31mred", // the older one-byte form
		"\x1b[?1000;25;2004l":           "\x1b[?25l",
		"a\x00\x7fb":                    "ab",
		"latin\xe9 1 \x9b31m":           "latin\ufffd 1 \ufffd31m",
		"\x1b[?1049;1h":                 "\x1b[?1049;1h",
		"\x1b]0;title\x07after":         "after",
		"\x1b]8;;file:///\x1b\\a\x1b[m": "a\x1b[m",
	} {
		if got, _ := passed(t, output); got != want {
			t.Errorf("%q passes as %q, want %q", output, got, want)
		}
	}
}

// The terminal is restored, even if a program was killed halfway.
func TestClose(t *testing.T) {
	for output, want := range map[string]string{
		"":                              "",
		"text\n":                        "",
		"\x1b[31m":                      "\x1b[0m",
		"\x1b[?1049h\x1b[?25l\x1b[2;3r": "\x1b[?25h\x1b[?1049l\x1b7\x1b[r\x1b8",
		"\x1b[?25l\x1b[?25h\x1b[?7l\x1b[?1h\x1b=": "\x1b[?1l\x1b[?7h\x1b>",
		"\x1b(0\x0e\x1b[4h\x1b[5 q":               "\x0f\x1b(B\x1b[0 q\x1b[4l",
		"\xc3":                                    "\ufffd",
	} {
		var b bytes.Buffer
		f, _ := Pair(&b, &b)
		_, _ = f.Write([]byte(output))
		b.Reset()
		if f.Close(); b.String() != want {
			t.Errorf("after %q: %q, want %q", output, b.String(), want)
		}
	}
}

// Two streams cannot form one sequence together.
func TestInterleaved(t *testing.T) {
	var screen bytes.Buffer
	out, err := Pair(&screen, &screen)
	for _, part := range []struct {
		to   *Filter
		text string
	}{{out, "\x1b]52"}, {err, ";c;"}, {out, "\x1b"}, {err, "[6n"}, {err, "\x1b["}, {out, "6n"}} {
		_, _ = part.to.Write([]byte(part.text))
	}
	out.Close()
	err.Close()
	if strings.Contains(screen.String(), "\x1b") {
		t.Errorf("%q", screen.String())
	}
	var wait sync.WaitGroup
	screen.Reset()
	out, err = Pair(&screen, &screen)
	for _, f := range []*Filter{out, err} {
		wait.Go(func() {
			for range 1000 {
				_, _ = f.Write([]byte("\x1b[31mx"))
			}
		})
	}
	wait.Wait()
	if strings.Count(screen.String(), "\x1b[31mx") != 2000 {
		t.Error("sequences were torn")
	}
}

// FuzzFilter: only text and listed sequences pass, whatever the input, and they pass unchanged a second time.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"\x1b[31m", "\x1b]52;c;\x1b[6n\x07", "\u009b6n", "\x1b\x1b[c", "\x1bP\x1b\\", "\x1b(0\xc3\x28", "\x1b[?25;2004h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, output string) {
		got, _ := passed(t, output)
		again, left := passed(t, got)
		if left != 0 || again != got {
			t.Errorf("%q passes as %q, and that as %q", output, got, again)
		}
		state, rest := byte(0), got
		p := ansi.NewParser()
		for len(rest) > 0 { // an independent parser
			seq, _, n, next := ansi.DecodeSequence(rest, state, p)
			if strings.HasPrefix(seq, "\x1b]") || strings.HasPrefix(seq, "\x1bP") || strings.HasPrefix(seq, "\x1b_") || strings.HasPrefix(seq, "\x1b^") || strings.HasPrefix(seq, "\x1bX") ||
				strings.HasPrefix(seq, "\x1b[") && strings.IndexByte("cntyxipzvw", seq[len(seq)-1]) >= 0 && seq != "\x1b[!p" {
				t.Errorf("%q passes as %q with %q", output, got, seq)
			}
			state, rest = next, rest[n:]
		}
	})
}
