package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/screen"
)

// shown is where a sandbox's command writes to. end is called after it: the terminal is then as it was.
func (a *app) shown(raw bool) (out, err io.Writer, end func()) {
	outSafe, errSafe := screen.Pair(a.stdout, a.stderr)
	out, err = a.stdout, a.stderr
	if !raw && painted(a.stdout) {
		out = outSafe
	}
	if !raw && painted(a.stderr) {
		err = errSafe
	}
	return out, err, func() {
		left := outSafe.Close() + errSafe.Close()
		if left > 0 {
			fmt.Fprintf(a.stderr, "pollux: %s of the command's, which a terminal would have obeyed, left out; --raw passes them\n", plural(left, "control sequence"))
		}
	}
}

// painted says whether what is written to w ends on a screen: on a terminal, or in a model's shell, whose agent shows it.
// A file gets every byte, and so does a pipe of a person's.
func painted(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	if isTerminal(f) {
		return true
	}
	info, err := f.Stat()
	if err != nil || info.Mode().IsRegular() || info.Mode()&os.ModeDevice != 0 {
		return false
	}
	return guard.Look(os.Getpid(), nil) == guard.Marked
}
