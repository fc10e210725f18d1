package console

import (
	"errors"
	"io"
	"os"

	"github.com/pollux-companion/pollux/internal/proc"
)

// errOpened ends what reads decisions from a pipe: they may be a model's own.
var errOpened = errors.New("another program has opened the pipe between pollux and the program that started it (/proc/PID/fd), and may have written into it; start pollux again")

// OwnPipes returns in, which fails once another program has opened in or out, if these are pipes. Nothing is read that it has written.
func OwnPipes(in io.Reader, out io.Writer) io.Reader {
	var files []*os.File
	for _, end := range []any{in, out} {
		if f, ok := end.(*os.File); ok {
			files = append(files, f)
		}
	}
	opened := proc.WatchPipes(files...)
	if opened == nil {
		return in
	}
	return readFunc(func(p []byte) (int, error) {
		n, err := in.Read(p)
		if opened() { // asked last: who has written has opened before
			return 0, errOpened
		}
		return n, err
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
