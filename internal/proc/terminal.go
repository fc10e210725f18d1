package proc

// A TTY is the terminal that a process belongs to.
type TTY struct {
	// ID tells terminals apart, on this machine at one time.
	ID uint64
	// Foreground says whether the process reads what is typed there: it is not suspended, and no other program runs in front of it.
	Foreground bool
}

// Terminal is the terminal of a process; ok is false when it has none, or the system does not say.
func Terminal(pid int) (t TTY, ok bool) {
	if pid <= 0 {
		return TTY{}, false
	}
	return terminalOf(pid)
}
