package proc

import (
	"errors"
	"os"
)

// A TTY is the terminal that a process belongs to.
type TTY struct {
	// ID distinguishes the terminals that exist on this machine at one time.
	ID uint64
	// Foreground reports whether the process reads what is typed there: it is not suspended, and no other program
	// runs in front of it.
	Foreground bool
}

// Terminal returns the terminal of a process; ok is false if it has none, or the system hides it.
func Terminal(pid int) (t TTY, ok bool) {
	if pid <= 0 {
		return TTY{}, false
	}
	return terminalOf(pid)
}

// errNoTTY: the terminal cannot be opened by its number.
var errNoTTY = errors.New("this terminal cannot be opened from outside")

// Open opens the terminal to write to it. It fails for another user's terminal, and on systems other than Linux.
func (t TTY) Open() (*os.File, error) { return openTTY(t.ID) }
