//go:build unix

package tty

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

const (
	// maxHeld bounds the command's output while another program has the screen, in bytes; then the command has to
	// wait.
	maxHeld = 8 << 20
	// quietWithin is how long to wait for the command to finish a sequence before interrupting it.
	quietWithin = 300 * time.Millisecond
	// drainWithin is how long the last output of an ended command may take.
	drainWithin = 500 * time.Millisecond
)

// A Shared is one terminal with a command on it, which another program may take for a while. Its methods may be called
// from any goroutine, but Take only by one at a time.
//
// Goroutines: one carries keys in, one carries the command's output out, one passes on size changes; Close ends them
// all.
type Shared struct {
	in, out *os.File
	pty     *os.File
	before  *term.State // the state of in before
	called  chan struct{}
	drained chan struct{} // closed when the command's output has ended
	resize  chan os.Signal

	keys sync.Mutex // guards input
	// input is where keys are read for the command; nil while another program has the screen.
	input cancelreader.CancelReader
	read  chan struct{} // closed when reading of input has ended

	mu    sync.Mutex // guards the fields below
	modes modes
	held  []byte
	taken bool
	room  *sync.Cond // signals that held has room again
	quiet chan struct{}
}

// Start runs cmd on a new terminal that is shown on in and out, which must be a terminal. The caller waits for the
// command and then calls Close.
func Start(cmd *exec.Cmd, in, out *os.File) (*Shared, error) {
	size, err := pty.GetsizeFull(out)
	if err != nil {
		return nil, fmt.Errorf("the size of the terminal is not known: %w", err)
	}
	s := &Shared{
		in: in, out: out, called: make(chan struct{}, 1), drained: make(chan struct{}),
		resize: make(chan os.Signal, 1),
	}
	s.room = sync.NewCond(&s.mu)
	if s.before, err = term.GetState(int(in.Fd())); err != nil {
		return nil, err
	}
	if s.pty, err = pty.StartWithSize(cmd, size); err != nil {
		return nil, err
	}
	signal.Notify(s.resize, syscall.SIGWINCH)
	go s.follow()
	go s.write()
	if err := s.listen(); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s.Close()
		return nil, err
	}
	return s, nil
}

// Called returns a channel that receives a value when the user presses Ctrl-].
func (s *Shared) Called() <-chan struct{} { return s.called }

// Close restores the terminal. The command must have ended, and no Take may be in progress.
func (s *Shared) Close() {
	select {
	case <-s.drained: // a child of the command may keep it open
	case <-time.After(drainWithin):
	}
	signal.Stop(s.resize)
	close(s.resize)
	s.stopListening()
	s.pty.Close()
	_ = term.Restore(int(s.in.Fd()), s.before)
}

// follow passes on the terminal's size.
func (s *Shared) follow() {
	for range s.resize {
		_ = pty.InheritSize(s.out, s.pty)
	}
}

// listen gives the terminal's keys to the command.
func (s *Shared) listen() error {
	s.keys.Lock()
	defer s.keys.Unlock()
	if _, err := term.MakeRaw(int(s.in.Fd())); err != nil {
		return err
	}
	input, err := cancelreader.NewReader(s.in)
	if err != nil {
		_ = term.Restore(int(s.in.Fd()), s.before)
		return err
	}
	s.input, s.read = input, make(chan struct{})
	go s.carry(input, s.read)
	return nil
}

// stopListening leaves the keys to others, and restores the terminal.
func (s *Shared) stopListening() {
	s.keys.Lock()
	defer s.keys.Unlock()
	if s.input == nil {
		return
	}
	if s.input.Cancel() {
		<-s.read
	}
	s.input.Close()
	s.input = nil
	_ = term.Restore(int(s.in.Fd()), s.before)
}

// carry passes keys to the command.
func (s *Shared) carry(input cancelreader.CancelReader, done chan struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := input.Read(buf)
		if n > 0 && call(string(buf[:n])) {
			select {
			case s.called <- struct{}{}:
			default:
			}
		} else if n > 0 {
			if _, err := s.pty.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// call reports whether keys are Ctrl-] alone, in any encoding that terminals use.
func call(keys string) bool {
	return keys == "\x1d" || keys == "\x1b[93;5u" || keys == "\x1b[27;5;93~"
}

// write passes on the command's output, or holds it.
func (s *Shared) write() {
	defer close(s.drained)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.pty.Read(buf)
		if n > 0 {
			s.put(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

func (s *Shared) put(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.taken && len(s.held) > maxHeld {
		s.room.Wait()
	}
	if s.taken {
		s.held = append(s.held, p...)
		return
	}
	_, _ = s.modes.Write(p)
	_, _ = s.out.Write(p)
	if s.quiet != nil && s.modes.quiet() {
		close(s.quiet)
		s.quiet = nil
		s.taken = true // before any further output
	}
}

// hold starts to hold the command's output, but first lets a sequence in progress end.
func (s *Shared) hold() {
	s.mu.Lock()
	if s.modes.quiet() {
		s.taken = true
		s.mu.Unlock()
		return
	}
	quiet := make(chan struct{})
	s.quiet = quiet
	s.mu.Unlock()
	select {
	case <-quiet:
	case <-s.drained:
	case <-time.After(quietWithin):
	}
	s.mu.Lock()
	s.quiet, s.taken = nil, true
	s.mu.Unlock()
}

// release passes on the command's output again, after the held output.
func (s *Shared) release() {
	s.mu.Lock()
	_, _ = s.out.WriteString(s.modes.restore())
	_, _ = s.modes.Write(s.held)
	_, _ = s.out.Write(s.held)
	alternate := s.modes.alternate()
	s.held, s.taken = nil, false
	s.room.Broadcast()
	s.mu.Unlock()
	if alternate {
		s.redraw()
	}
}

// redraw makes a command redraw its lost alternate screen, by a change of the terminal's size.
func (s *Shared) redraw() {
	size, err := pty.GetsizeFull(s.out)
	if err != nil || size.Rows < 2 {
		return
	}
	smaller := *size
	smaller.Rows--
	_ = pty.Setsize(s.pty, &smaller)
	_ = pty.Setsize(s.pty, size)
}

// Take gives the screen and the keys to f, with the terminal as the command found it, and then back to the command.
// The command's output meanwhile follows afterwards.
func (s *Shared) Lend(f func() error) error {
	s.hold()
	s.mu.Lock()
	_, _ = s.out.WriteString(s.modes.clear())
	s.mu.Unlock()
	s.stopListening()
	err := f()
	listened := s.listen()
	s.release()
	return errors.Join(err, listened)
}
