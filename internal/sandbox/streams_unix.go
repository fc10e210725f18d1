//go:build unix

package sandbox

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// streams are a command's standard streams. They are always pipes, so the command never holds a descriptor of the
// user's terminal or files.
//
// Goroutines: one for each output stream, awaited by wait; and one for input, which may outlive the run while Stdin
// blocks.
type streams struct {
	c                     *Command
	kill                  func(error)
	stdin, stdout, stderr *os.File // the command's ends
	in, out, err          *os.File // pollux's ends; in is nil without input
	copying               sync.WaitGroup
	left                  atomic.Int64 // bytes of output still allowed
	outBuf, errBuf        bytes.Buffer
	outEnd, errEnd        tail
}

// newStreams makes the pipes of a command. It calls kill if the command writes too much, or if its output cannot be
// passed on.
func newStreams(c *Command, kill func(error)) (*streams, error) {
	st := &streams{c: c, kill: kill}
	st.left.Store(c.Limits.Output)
	var err error
	if st.out, st.stdout, err = os.Pipe(); err == nil {
		st.err, st.stderr, err = os.Pipe()
	}
	if err == nil && c.Stdin == nil {
		st.stdin, err = os.Open(os.DevNull)
	} else if err == nil {
		st.stdin, st.in, err = os.Pipe()
	}
	if err != nil {
		st.closeTheirs()
		st.close()
		return nil, err
	}
	return st, nil
}

// begin starts copying.
func (st *streams) begin() {
	st.copying.Go(func() { st.copy(cmp.Or[io.Writer](st.c.Stdout, &st.outBuf), &st.outEnd, st.out) })
	st.copying.Go(func() { st.copy(cmp.Or[io.Writer](st.c.Stderr, &st.errBuf), &st.errEnd, st.err) })
	if st.in != nil {
		// Nobody waits for this goroutine: Read blocks while the user's terminal has nothing to say.
		go func() {
			_, _ = io.Copy(st.in, st.c.Stdin) // a command may stop reading
			st.in.Close()
		}()
	}
}

// copy passes output on, and keeps its end. At the limit it ends the command.
func (st *streams) copy(to io.Writer, end *tail, from io.Reader) {
	buf := make([]byte, 32*kib)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			before := st.left.Add(int64(-n)) + int64(n)
			if over := int64(n) > before; over {
				n = int(max(before, 0))
				st.kill(&LimitError{Kind: limitOutput, Limit: st.c.Limits.Output})
			}
			end.add(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				st.kill(err) // nobody reads the output any more
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns when all output has been read, after the last process that could write is gone.
func (st *streams) wait(result *Result) {
	st.copying.Wait()
	result.Stdout, result.Stderr = st.outBuf.Bytes(), st.errBuf.Bytes()
}

// missed guesses what a failed command missed, after wait.
func (st *streams) missed(p Policy, r *Result) Missed {
	if r.Code == 0 || r.Limit != nil {
		return MissedNothing
	}
	return missed(p, st.errEnd.end(), st.outEnd.end())
}

func (st *streams) closeTheirs() {
	for _, f := range []*os.File{st.stdin, st.stdout, st.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

func (st *streams) close() {
	for _, f := range []*os.File{st.in, st.out, st.err} {
		if f != nil {
			f.Close()
		}
	}
}
