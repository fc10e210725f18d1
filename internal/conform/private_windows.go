package conform

import "os"

// private: modes say nothing on Windows.
func private(string, os.FileMode) error { return skip("Windows has no modes") }

// interrupt ends a process: Windows has no way to ask one without a console.
func interrupt(p *os.Process) error { return p.Kill() }
