package terminal

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// Coloured is the screen as Screen has it, with the terminal's own codes for colours.
func (tm *Terminal) Coloured() string { return tm.run(tm.at("capture-pane", "-p", "-e", "-N")...) }

// A style is how a piece of text looks.
type style struct {
	fg, bg                        string // "#rrggbb", "" for the terminal's own
	bold, reverse, underline, dim bool
}

// The size of a character cell in the picture, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 17
)

// SVG draws a screen that Coloured has returned.
func SVG(screen string) []byte {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	width := 0
	var body strings.Builder
	st := style{}
	for row, line := range lines {
		column := 0
		for line != "" {
			var text string
			text, line, st = piece(line, st)
			n := uniseg.StringWidth(text)
			draw(&body, text, column, row, n, st)
			column += n
		}
		width = max(width, column)
	}
	w, h := float64(width)*cellWidth+16, len(lines)*cellHeight+16
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
<rect width="100%%" height="100%%" rx="6" fill="%s"/>
%s</svg>
`, w, h, w, h, background, body.String())
}

// The terminal's own colours.
const (
	foreground = "#d8dee9"
	background = "#1e222a"
)

// draw writes one piece of text of one style; n is its width in cells.
func draw(out *strings.Builder, text string, column, row, n int, st style) {
	fg, bg := st.fg, st.bg
	if fg == "" {
		fg = foreground
	}
	if st.reverse {
		if bg == "" {
			bg = background
		}
		fg, bg = bg, fg
	}
	x, y := 8+float64(column)*cellWidth, 8+row*cellHeight
	if bg != "" && n > 0 {
		fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, float64(n)*cellWidth, cellHeight, bg)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	attributes := ""
	if st.bold {
		attributes += ` font-weight="bold"`
	}
	if st.underline {
		attributes += ` text-decoration="underline"`
	}
	if st.dim {
		attributes += ` opacity="0.6"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%d" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s>%s</text>`+"\n",
		x, y+13, fg, float64(n)*cellWidth, attributes, html.EscapeString(text))
}

// piece takes the text up to the next code, or a code, off a line.
func piece(line string, st style) (text, rest string, next style) {
	i := strings.IndexAny(line, "\x1b\x0e\x0f")
	switch {
	case i < 0:
		return line, "", st
	case i > 0:
		return line[:i], line[i:], st
	case line[0] != 0x1b:
		return "", line[1:], st // shift in and out
	}
	if !strings.HasPrefix(line, "\x1b[") {
		return "", line[min(3, len(line)):], st // the choice of a character set
	}
	end := strings.IndexAny(line, "mKHJ")
	if end < 0 {
		return "", "", st
	}
	if line[end] == 'm' {
		st = st.apply(strings.Split(line[2:end], ";"))
	}
	return "", line[end+1:], st
}

// apply reads the numbers of one code.
func (st style) apply(codes []string) style {
	for i := 0; i < len(codes); i++ {
		n, _ := strconv.Atoi(codes[i])
		switch {
		case n == 0:
			st = style{}
		case n == 1:
			st.bold = true
		case n == 2:
			st.dim = true
		case n == 4:
			st.underline = true
		case n == 7:
			st.reverse = true
		case n == 22:
			st.bold, st.dim = false, false
		case n == 24:
			st.underline = false
		case n == 27:
			st.reverse = false
		case n == 39:
			st.fg = ""
		case n == 49:
			st.bg = ""
		case n == 38 || n == 48:
			var colour string
			colour, i = extended(codes, i)
			if n == 38 {
				st.fg = colour
			} else {
				st.bg = colour
			}
		case n >= 30 && n <= 37:
			st.fg = palette(n - 30)
		case n >= 40 && n <= 47:
			st.bg = palette(n - 40)
		case n >= 90 && n <= 97:
			st.fg = palette(n - 82)
		case n >= 100 && n <= 107:
			st.bg = palette(n - 92)
		}
	}
	return st
}

// extended reads 38;5;N and 38;2;R;G;B, and returns the index of their last number.
func extended(codes []string, i int) (colour string, last int) {
	number := func(k int) int {
		if i+k >= len(codes) {
			return 0
		}
		n, _ := strconv.Atoi(codes[i+k])
		return n & 255
	}
	if number(1) == 5 {
		return palette(number(2)), i + 2
	}
	return fmt.Sprintf("#%02x%02x%02x", number(2), number(3), number(4)), i + 4
}

// palette is one of the 256 colours of terminals.
func palette(n int) string {
	first := [16]string{
		"#3b4252", "#bf616a", "#7fa65a", "#c9a24d", "#5e81c4", "#a36bb0", "#4f9fb0", "#d8dee9",
		"#5c6678", "#d9707c", "#a3be8c", "#ebcb8b", "#81a1e1", "#c48fd0", "#88c0d0", "#eceff4",
	}
	switch {
	case n < 16:
		return first[n]
	case n >= 232:
		grey := 8 + (n-232)*10
		return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
	}
	n -= 16
	level := func(k int) int {
		if k == 0 {
			return 0
		}
		return 55 + 40*k
	}
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
}
