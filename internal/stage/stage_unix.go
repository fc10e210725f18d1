//go:build unix

package stage

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
	// maxHeld bounds what the command writes while another has the screen, in bytes; then it has to wait.
	maxHeld = 8 << 20
	// quietWithin is how long a command may be in the middle of something before it is interrupted all the same.
	quietWithin = 300 * time.Millisecond
	// drainWithin is how long the last words of a command that has ended may take.
	drainWithin = 500 * time.Millisecond
)

// A Stage is one terminal with a command on it, which another program may take
// for a while. Its methods may be called from any goroutine, Take by one at a time.
//
// Goroutines: one that carries keys in, one that carries the command's words
// out, and one for changes of the size; Close ends them all.
type Stage struct {
	in, out *os.File
	pty     *os.File
	before  *term.State // of in
	called  chan struct{}
	drained chan struct{} // closed when the command's output has ended
	resize  chan os.Signal

	keys sync.Mutex // guards input
	// input is where keys are read for the command; nil while another has the screen.
	input cancelreader.CancelReader
	read  chan struct{} // closed when the reading of input has ended

	mu    sync.Mutex // guards the below
	modes Modes
	held  []byte
	taken bool
	room  *sync.Cond // there is room in held again
	quiet chan struct{}
}

// Start runs cmd on a terminal of its own that is shown on in and out, which
// must be a terminal. The caller waits for the command and then calls Close.
func Start(cmd *exec.Cmd, in, out *os.File) (*Stage, error) {
	size, err := pty.GetsizeFull(out)
	if err != nil {
		return nil, fmt.Errorf("the size of the terminal is not known: %w", err)
	}
	s := &Stage{
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

// Called gets a value when the user presses Ctrl-].
func (s *Stage) Called() <-chan struct{} { return s.called }

// Close puts the terminal back as it was. The command has ended, and no Take is in progress.
func (s *Stage) Close() {
	select {
	case <-s.drained: // a child of the command's may keep it open
	case <-time.After(drainWithin):
	}
	signal.Stop(s.resize)
	close(s.resize)
	s.stopListening()
	s.pty.Close()
	_ = term.Restore(int(s.in.Fd()), s.before)
}

// follow passes the terminal's size on.
func (s *Stage) follow() {
	for range s.resize {
		_ = pty.InheritSize(s.out, s.pty)
	}
}

// listen makes the terminal the command's: every key is its own.
func (s *Stage) listen() error {
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

// stopListening leaves the keys to others, and the terminal as it was.
func (s *Stage) stopListening() {
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

// carry takes keys to the command.
func (s *Stage) carry(input cancelreader.CancelReader, done chan struct{}) {
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

// call says that keys are Ctrl-] alone, in one of the ways in which terminals say so.
func call(keys string) bool {
	return keys == "\x1d" || keys == "\x1b[93;5u" || keys == "\x1b[27;5;93~"
}

// write takes the command's words out, or keeps them.
func (s *Stage) write() {
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

func (s *Stage) put(p []byte) {
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
	if s.quiet != nil && s.modes.Quiet() {
		close(s.quiet)
		s.quiet = nil
		s.taken = true // before the next word
	}
}

// hold keeps the command's words from now on, but lets it end what it is in the middle of.
func (s *Stage) hold() {
	s.mu.Lock()
	if s.modes.Quiet() {
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

// release lets the command's words out again, after what was kept.
func (s *Stage) release() {
	s.mu.Lock()
	_, _ = s.out.WriteString(s.modes.Restore())
	_, _ = s.modes.Write(s.held)
	_, _ = s.out.Write(s.held)
	alternate := s.modes.Alternate()
	s.held, s.taken = nil, false
	s.room.Broadcast()
	s.mu.Unlock()
	if alternate {
		s.redraw()
	}
}

// redraw makes a command on the alternate screen, which has been lost, draw itself anew: as after a change of the size.
func (s *Stage) redraw() {
	size, err := pty.GetsizeFull(s.out)
	if err != nil || size.Rows < 2 {
		return
	}
	smaller := *size
	smaller.Rows--
	_ = pty.Setsize(s.pty, &smaller)
	_ = pty.Setsize(s.pty, size)
}

// Take gives the screen and the keys to f, which finds the terminal as the command found it, and then back to
// the command. What the command writes meanwhile comes out afterwards.
func (s *Stage) Take(f func() error) error {
	s.hold()
	s.mu.Lock()
	_, _ = s.out.WriteString(s.modes.Clear())
	s.mu.Unlock()
	s.stopListening()
	err := f()
	listened := s.listen()
	s.release()
	return errors.Join(err, listened)
}
