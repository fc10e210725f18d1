package confine

import (
	"fmt"
	"io"
	"os"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/screen"
	"github.com/pollux-companion/pollux/internal/words"
)

// shown returns the outputs for a sandboxed command. Call end after it, to restore the terminal.
func shown(con *console.Console, raw bool) (out, err io.Writer, end func()) {
	outSafe, errSafe := screen.Pair(con.Out, con.Err)
	out, err = con.Out, con.Err
	if !raw && Painted(con.Out) {
		out = outSafe
	}
	if !raw && Painted(con.Err) {
		err = errSafe
	}
	return out, err, func() {
		left := outSafe.Close() + errSafe.Close()
		if left > 0 {
			fmt.Fprintf(con.Err, "pollux: %s of the command's, which a terminal would have obeyed, left out; --raw passes them\n", words.Plural(left, "control sequence"))
		}
	}
}

// Painted reports whether output to w appears on a screen: on a terminal, or in a model's shell, whose agent shows
// it. A file gets every byte, and so does a user's pipe.
func Painted(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	if console.Terminal(f) != nil {
		return true
	}
	info, err := f.Stat()
	if err != nil || info.Mode().IsRegular() || info.Mode()&os.ModeDevice != 0 {
		return false
	}
	return guard.Look(os.Getpid(), nil) == guard.Marked
}
