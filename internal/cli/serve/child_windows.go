package serve

import "os"

// passSignal does nothing: the console signals all of its processes.
func passSignal(*os.Process, os.Signal) {}

func exitCodeOf(ps *os.ProcessState) int { return ps.ExitCode() }
