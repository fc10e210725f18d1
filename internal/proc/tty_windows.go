package proc

// terminalOf finds nothing: Windows does not reveal other processes' consoles.
func terminalOf(int) (TTY, bool) { return TTY{}, false }
