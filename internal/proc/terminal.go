package proc

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
