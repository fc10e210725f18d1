package conform

import "os"

// private is skipped: modes have no meaning on Windows.
func private(string, os.FileMode) error { return skip("Windows has no modes") }

// interrupt kills a process: Windows cannot ask one to end without a console.
func interrupt(p *os.Process) error { return p.Kill() }
