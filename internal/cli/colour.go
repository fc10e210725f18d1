package cli

import (
	"io"
	"os"
)

// A colour is a terminal's code for it.
type colour string

const (
	red  colour = "\x1b[31m"
	bold colour = "\x1b[1m"
)

// paint colours text for a terminal that wants it, and for nothing else.
func paint(w io.Writer, c colour, text string) string {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(f) {
		return text
	}
	return string(c) + text + "\x1b[0m"
}
