package proc

import "os"

// terminalOf finds nothing: Windows does not reveal other processes' consoles.
func terminalOf(int) (TTY, bool) { return TTY{}, false }

func openTTY(uint64) (*os.File, error) { return nil, errNoTTY }
