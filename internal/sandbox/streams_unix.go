//go:build unix

package sandbox

import (
	"bytes"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Streams are a command's standard streams: always pipes, so that it never
// holds a descriptor of the user's terminal or files.
//
// Goroutines: one for each stream, ended by wait.
type streams struct {
	c                     *Command
	kill                  func(error)
	stdin, stdout, stderr *os.File // the command's ends
	in, out, err          *os.File // ours; in is nil without input
	copying               sync.WaitGroup
	left                  atomic.Int64 // bytes of output that may still come
	outBuf, errBuf        bytes.Buffer
}

// newStreams makes the pipes of a command; kill is called when it has written
// too much, or what it writes cannot be passed on.
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
	st.copying.Go(func() { st.copy(or[io.Writer](st.c.Stdout, &st.outBuf), st.out) })
	st.copying.Go(func() { st.copy(or[io.Writer](st.c.Stderr, &st.errBuf), st.err) })
	if st.in != nil {
		// Not waited for: the user's terminal may have nothing more to say, and
		// then Read does not return.
		go func() {
			_, _ = io.Copy(st.in, st.c.Stdin) // a command that reads no more is no error
			st.in.Close()
		}()
	}
}

// copy passes output on until its limit, at which the command is ended.
func (st *streams) copy(to io.Writer, from io.Reader) {
	buf := make([]byte, 32*kib)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			before := st.left.Add(int64(-n)) + int64(n)
			if over := int64(n) > before; over {
				n = int(max(before, 0))
				st.kill(&LimitError{Kind: limitOutput, Limit: st.c.Limits.Output})
			}
			if _, err := to.Write(buf[:n]); err != nil {
				st.kill(err) // nobody reads any more
			}
		}
		if err != nil {
			return
		}
	}
}

// wait ends when all output has been read: the last process that could write is gone.
func (st *streams) wait(result *Result) {
	st.copying.Wait()
	result.Stdout, result.Stderr = st.outBuf.Bytes(), st.errBuf.Bytes()
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
